import java.nio.file.Paths;
import java.util.Collections;
import org.opensearch.common.settings.Settings;
import org.opensearch.env.Environment;
import org.opensearch.node.Node;
import org.opensearch.transport.Netty4Plugin;

/** One node of OpenSearch out of its jars. Arguments are settings: name=value. */
public class SearchNode extends Node {
    public SearchNode(Environment environment) {
        super(environment, Collections.singletonList(Netty4Plugin.class), false);
    }

    public static void main(String[] arguments) throws Exception {
        Settings.Builder settings = Settings.builder();
        for (int i = 0; i < arguments.length; i++) {
            int split = arguments[i].indexOf('=');
            settings.put(arguments[i].substring(0, split), arguments[i].substring(split + 1));
        }
        Settings built = settings.build();
        new SearchNode(new Environment(built, Paths.get(built.get("path.home"), "config"))).start();
        Thread.currentThread().join();
    }
}
