import com.amazonaws.services.dynamodbv2.AcquireLockOptions;
import com.amazonaws.services.dynamodbv2.AmazonDynamoDBLockClient;
import com.amazonaws.services.dynamodbv2.AmazonDynamoDBLockClientOptions;
import com.amazonaws.services.dynamodbv2.LockItem;
import com.amazonaws.services.dynamodbv2.ReleaseLockOptions;
import com.amazonaws.services.dynamodbv2.model.LockCurrentlyUnavailableException;
import com.amazonaws.services.dynamodbv2.model.LockNotGrantedException;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.net.URI;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import software.amazon.awssdk.auth.credentials.AwsBasicCredentials;
import software.amazon.awssdk.auth.credentials.StaticCredentialsProvider;
import software.amazon.awssdk.http.urlconnection.UrlConnectionHttpClient;
import software.amazon.awssdk.regions.Region;
import software.amazon.awssdk.services.dynamodb.DynamoDbClient;

/**
 * An AWS lock client that does what it is told, a line at a time, and answers each line with one.
 *
 * <pre>
 * java Neighbour URL TABLE OWNER LEASE-MS HEARTBEAT-MS
 *
 * try NAME        held | taken       it waits for a lock to be abandoned, for one lease of that lock and a second
 * once NAME       held | taken       it doesn't wait
 * release         released | lost    the row is deleted
 * keep            released | lost    the row is kept and marked
 * has NAME        yes | no           does it think that it has the lock?
 * list            the number of rows that it reads in the whole table
 * </pre>
 *
 * What it can't do is answered by "error: …". It crashes by being killed.
 */
public final class Neighbour {
  private static AmazonDynamoDBLockClient client;
  private static LockItem held;

  public static void main(String[] args) throws Exception {
    DynamoDbClient db =
        DynamoDbClient.builder()
            .endpointOverride(URI.create(args[0]))
            .region(Region.US_EAST_1)
            .credentialsProvider(
                StaticCredentialsProvider.create(AwsBasicCredentials.create("test", "test")))
            .httpClient(UrlConnectionHttpClient.create())
            .build();
    client =
        new AmazonDynamoDBLockClient(
            AmazonDynamoDBLockClientOptions.builder(db, args[1])
                .withOwnerName(args[2])
                .withTimeUnit(TimeUnit.MILLISECONDS)
                .withLeaseDuration(Long.valueOf(args[3]))
                .withHeartbeatPeriod(Long.valueOf(args[4]))
                .withCreateHeartbeatBackgroundThread(true)
                .build());
    client.lockTableExists(); // the first request is slow
    System.out.println("ready");
    BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
    for (String line = lines.readLine(); line != null; line = lines.readLine()) {
      System.out.println(answer(line));
    }
    System.exit(0); // as a crash: nothing is released
  }

  private static String answer(String line) {
    String[] words = line.split(" ", 2);
    try {
      switch (words[0]) {
        case "try":
          return acquire(AcquireLockOptions.builder(words[1]));
        case "once":
          return acquire(AcquireLockOptions.builder(words[1]).withShouldSkipBlockingWait(true));
        case "release":
          return release(true);
        case "keep":
          return release(false);
        case "has":
          return client.hasLock(words[1], Optional.empty()) ? "yes" : "no";
        case "list":
          return String.valueOf(client.getAllLocksFromDynamoDB(false).count());
        default:
          return "error: " + line + " is no command";
      }
    } catch (Exception e) {
      return "error: " + String.valueOf(e).replace('\n', ' ');
    }
  }

  private static String acquire(AcquireLockOptions.AcquireLockOptionsBuilder options)
      throws InterruptedException {
    try {
      held =
          client.acquireLock(
              options
                  .withTimeUnit(TimeUnit.MILLISECONDS)
                  .withRefreshPeriod(50L)
                  .withAdditionalTimeToWaitForLock(1000L)
                  .withDeleteLockOnRelease(true)
                  .build());
      return "held";
    } catch (LockCurrentlyUnavailableException | LockNotGrantedException e) {
      return "taken";
    }
  }

  private static String release(boolean delete) {
    if (held == null) {
      return "error: nothing is held";
    }
    boolean ok =
        client.releaseLock(ReleaseLockOptions.builder(held).withDeleteLock(delete).build());
    held = null;
    return ok ? "released" : "lost";
  }
}
