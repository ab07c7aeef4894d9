import java.lang.reflect.Field;
import org.eclipse.jetty.server.Connector;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.ServerConnector;
import software.amazon.dynamodb.services.local.main.ServerRunner;
import software.amazon.dynamodb.services.local.server.DynamoDBProxyServer;

/** DynamoDB Local on the loopback interface: its own main listens on every interface, and has no option for that. */
public final class Loopback {
	public static void main(String[] args) throws Exception {
		DynamoDBProxyServer proxy = ServerRunner.createServerFromCommandLineArgs(args);
		Field field = DynamoDBProxyServer.class.getDeclaredField("server");
		field.setAccessible(true);
		for (Connector connector : ((Server) field.get(proxy)).getConnectors()) {
			((ServerConnector) connector).setHost("127.0.0.1");
		}
		proxy.start();
		proxy.join();
	}
}
