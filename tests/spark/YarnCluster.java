import java.io.FileOutputStream;
import org.apache.hadoop.yarn.conf.YarnConfiguration;
import org.apache.hadoop.yarn.server.MiniYARNCluster;

/** YARN with one node, out of Hadoop's jars. Arguments: a file for its configuration, and settings name=value. */
public class YarnCluster {
    public static void main(String[] arguments) throws Exception {
        YarnConfiguration settings = new YarnConfiguration();
        for (int i = 1; i < arguments.length; i++) {
            int split = arguments[i].indexOf('=');
            settings.set(arguments[i].substring(0, split), arguments[i].substring(split + 1));
        }
        MiniYARNCluster cluster = new MiniYARNCluster("penstock", 1, 1, 1);
        cluster.init(settings);
        cluster.start();
        cluster.waitForNodeManagersToConnect(60000L);
        FileOutputStream file = new FileOutputStream(arguments[0] + ".new");
        cluster.getConfig().writeXml(file);
        file.close();
        new java.io.File(arguments[0] + ".new").renameTo(new java.io.File(arguments[0]));
        Thread.currentThread().join();
    }
}
