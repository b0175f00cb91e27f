import io.kubernetes.client.Discovery;
import io.kubernetes.client.Discovery.APIResource;
import io.kubernetes.client.util.Config;
import java.util.TreeSet;

/**
 * Lists the resources that the Java client's discovery finds: one line {@code GROUP/VERSION RESOURCE} for each.
 *
 * <p>This client looks at one version of each group, the preferred one.
 */
public class Client {
  public static void main(String[] arguments) throws Exception {
    var found = new TreeSet<String>();
    for (APIResource resource : new Discovery(Config.fromConfig(System.getenv("KUBECONFIG"))).findAll()) {
      var group = resource.getGroup().isEmpty() ? "" : resource.getGroup() + "/";
      var name = group + resource.getPreferredVersion() + " " + resource.getResourcePlural();
      found.add(name);
      for (String subresource : resource.getSubResources()) {
        found.add(name + "/" + subresource);
      }
    }
    found.forEach(System.out::println);
  }
}
