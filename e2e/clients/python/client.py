"""Lists the resources that the Python client's dynamic discovery finds: one line `GROUP/VERSION RESOURCE` for each."""

import os
import tempfile

from kubernetes import config
from kubernetes.dynamic import DynamicClient
from kubernetes.dynamic.resource import ResourceList

with tempfile.TemporaryDirectory() as folder:
    # The client keeps what it has discovered by address, which another cluster may have had before.
    client = DynamicClient(
        config.new_client_from_config(os.environ["KUBECONFIG"]), cache_file=os.path.join(folder, "cache.json")
    )
    found = set()
    for resource in (resource for resources in client.resources for resource in resources):
        if isinstance(resource, ResourceList):
            continue  # The client's own invention, one for every resource.
        found.add(f"{resource.group_version} {resource.name}")
        for subresource in resource.subresources:
            found.add(f"{resource.group_version} {resource.name}/{subresource}")

print("\n".join(sorted(found)))
