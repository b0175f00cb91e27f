// Lists the resources that the JavaScript client finds: one line `GROUP/VERSION RESOURCE` for each.
//
// The client has no call that finds all of them, so this asks for each group version. Every kind that can be listed is
// then listed by name through the client's object API, which reads discovery once more, for itself.

import { ApisApi, CoreV1Api, CustomObjectsApi, KubeConfig, KubernetesObjectApi } from "@kubernetes/client-node";

const config = new KubeConfig();
config.loadFromFile(process.env.KUBECONFIG);
const objects = KubernetesObjectApi.makeApiClient(config);

const lists = [await config.makeApiClient(CoreV1Api).getAPIResources()];
const { groups } = await config.makeApiClient(ApisApi).getAPIVersions();
for (const group of groups) {
  for (const { version } of group.versions) {
    lists.push(await config.makeApiClient(CustomObjectsApi).getAPIResources({ group: group.name, version }));
  }
}

const found = new Set();
for (const { groupVersion, resources } of lists) {
  for (const { name, kind, verbs } of resources) {
    found.add(`${groupVersion} ${name}`);
    if (verbs.includes("list") && !name.includes("/")) {
      await objects.list(groupVersion, kind);
    }
  }
}
console.log([...found].sort().join("\n"));
