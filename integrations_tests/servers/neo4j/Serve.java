import java.nio.file.Path;
import java.time.Duration;
import java.util.concurrent.CountDownLatch;
import org.neo4j.configuration.GraphDatabaseInternalSettings;
import org.neo4j.configuration.GraphDatabaseSettings;
import org.neo4j.configuration.connectors.BoltConnector;
import org.neo4j.configuration.helpers.SocketAddress;
import org.neo4j.dbms.api.DatabaseManagementServiceBuilder;

/** Serves the database in a folder over Bolt until it is killed: {@code java Serve.java FOLDER PORT}. */
class Serve {
  public static void main(String[] given) throws Exception {
    var folder = Path.of(given[0]);
    var place = new SocketAddress("127.0.0.1", Integer.parseInt(given[1]));
    var neo4j =
        new DatabaseManagementServiceBuilder(folder)
            .setConfig(GraphDatabaseSettings.auth_enabled, true)
            // A test that is refused must not keep the next ones out.
            .setConfig(GraphDatabaseSettings.auth_max_failed_attempts, 0)
            // Each test fills an empty store, and would have all texts planned anew by what it holds.
            .setConfig(GraphDatabaseSettings.cypher_min_replan_interval, Duration.ofHours(1))
            // Nor for every length that a list or a text of the parameters has.
            .setConfig(GraphDatabaseInternalSettings.cypher_size_hint_parameters, false)
            // Half a gigabyte, of which tests fill a few megabytes.
            .setConfig(GraphDatabaseSettings.preallocate_logical_logs, false)
            .setConfig(BoltConnector.advertised_address, place)
            .setConfig(BoltConnector.listen_address, place)
            .setConfig(BoltConnector.enabled, true)
            .build();
    Runtime.getRuntime().addShutdownHook(new Thread(neo4j::shutdown));
    System.out.println("serving " + place);
    new CountDownLatch(1).await();
  }
}
