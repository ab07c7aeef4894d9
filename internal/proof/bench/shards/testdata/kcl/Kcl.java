import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.Proxy;
import java.math.BigInteger;
import java.net.URI;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Comparator;
import java.util.Deque;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.reactivestreams.Subscriber;
import org.reactivestreams.Subscription;
import software.amazon.awssdk.auth.credentials.AwsBasicCredentials;
import software.amazon.awssdk.auth.credentials.StaticCredentialsProvider;
import software.amazon.awssdk.regions.Region;
import software.amazon.awssdk.services.cloudwatch.CloudWatchAsyncClient;
import software.amazon.awssdk.services.dynamodb.DynamoDbAsyncClient;
import software.amazon.awssdk.services.kinesis.KinesisAsyncClient;
import software.amazon.awssdk.services.kinesis.model.HashKeyRange;
import software.amazon.awssdk.services.kinesis.model.SequenceNumberRange;
import software.amazon.awssdk.services.kinesis.model.Shard;
import software.amazon.awssdk.services.kinesis.model.ShardFilter;
import software.amazon.kinesis.common.ConfigsBuilder;
import software.amazon.kinesis.common.InitialPositionInStreamExtended;
import software.amazon.kinesis.common.RequestDetails;
import software.amazon.kinesis.common.StreamConfig;
import software.amazon.kinesis.common.StreamIdentifier;
import software.amazon.kinesis.coordinator.Scheduler;
import software.amazon.kinesis.leases.LeaseManagementConfig;
import software.amazon.kinesis.leases.ShardDetector;
import software.amazon.kinesis.leases.ShardInfo;
import software.amazon.kinesis.lifecycle.events.InitializationInput;
import software.amazon.kinesis.lifecycle.events.LeaseLostInput;
import software.amazon.kinesis.lifecycle.events.ProcessRecordsInput;
import software.amazon.kinesis.lifecycle.events.ShardEndedInput;
import software.amazon.kinesis.lifecycle.events.ShutdownRequestedInput;
import software.amazon.kinesis.metrics.MetricsFactory;
import software.amazon.kinesis.metrics.NullMetricsFactory;
import software.amazon.kinesis.processor.ShardRecordProcessor;
import software.amazon.kinesis.processor.SingleStreamTracker;
import software.amazon.kinesis.retrieval.RecordsPublisher;
import software.amazon.kinesis.retrieval.RecordsRetrieved;
import software.amazon.kinesis.retrieval.RetrievalConfig;
import software.amazon.kinesis.retrieval.RetrievalFactory;
import software.amazon.kinesis.retrieval.kpl.ExtendedSequenceNumber;

// Workers of the Kinesis Client Library in one process, on a stream that has shards and no records. Arguments: the endpoint of DynamoDB, how
// many shards, the failover time in milliseconds. Lines of standard input are commands: "join N", and "leave" for the worker with the most
// shards; to each line that is empty it answers how many shards each worker has.
public class Kcl {
  static final StreamIdentifier STREAM = StreamIdentifier.singleStreamInstance("stream");
  static final List<Shard> SHARDS = new ArrayList<>();

  // A worker, and how many shards it has.
  static class Worker {
    final AtomicInteger has = new AtomicInteger();
    Scheduler scheduler;
    Thread thread;
  }

  public static void main(String[] args) throws Exception {
    int n = Integer.parseInt(args[1]);
    long failover = Long.parseLong(args[2]);
    BigInteger all = BigInteger.ONE.shiftLeft(128);
    for (int i = 0; i < n; i++) {
      BigInteger from = all.multiply(BigInteger.valueOf(i)).divide(BigInteger.valueOf(n));
      BigInteger to = all.multiply(BigInteger.valueOf(i + 1)).divide(BigInteger.valueOf(n)).subtract(BigInteger.ONE);
      SHARDS.add(Shard.builder().shardId(String.format("shardId-%012d", i))
          .hashKeyRange(HashKeyRange.builder().startingHashKey(from.toString()).endingHashKey(to.toString()).build())
          .sequenceNumberRange(SequenceNumberRange.builder().startingSequenceNumber("1").build()).build());
    }
    Deque<Worker> workers = new ArrayDeque<>();
    int made = 0;
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
    for (String line; (line = in.readLine()) != null; ) {
      if (line.startsWith("join ")) {
        for (int i = Integer.parseInt(line.substring(5)); i > 0; i--) workers.add(worker(args[0], "worker-" + made++, failover));
      } else if (line.equals("leave")) {
        Worker most = Collections.max(workers, Comparator.comparingInt((Worker w) -> w.has.get()));
        workers.remove(most);
        most.scheduler.startGracefulShutdown();
      } else {
        StringBuilder b = new StringBuilder("has");
        for (Worker w : workers) b.append(' ').append(w.has.get());
        System.out.println(b);
      }
    }
    System.exit(0);
  }

  static Worker worker(String endpoint, String name, long failover) {
    Worker w = new Worker();
    DynamoDbAsyncClient dynamo = DynamoDbAsyncClient.builder().endpointOverride(URI.create(endpoint)).region(Region.US_EAST_1)
        .credentialsProvider(StaticCredentialsProvider.create(AwsBasicCredentials.create("leasehold", "leasehold"))).build();
    KinesisAsyncClient kinesis = KinesisAsyncClient.builder().region(Region.US_EAST_1).endpointOverride(URI.create("http://127.0.0.1:1"))
        .credentialsProvider(StaticCredentialsProvider.create(AwsBasicCredentials.create("leasehold", "leasehold"))).build(); // never asked
    ConfigsBuilder c = new ConfigsBuilder(new SingleStreamTracker(STREAM), "kcl", kinesis, dynamo, absent(CloudWatchAsyncClient.class), name,
        () -> new Processor(w.has));
    LeaseManagementConfig leases = c.leaseManagementConfig().failoverTimeMillis(failover).customShardDetectorProvider(s -> new Detector());
    RetrievalConfig retrieval = c.retrievalConfig().retrievalFactory(new Retrieval());
    w.scheduler = new Scheduler(c.checkpointConfig(), c.coordinatorConfig(), leases, c.lifecycleConfig(),
        c.metricsConfig().metricsFactory(new NullMetricsFactory()), c.processorConfig(), retrieval);
    w.thread = new Thread(w.scheduler, name);
    w.thread.start();
    return w;
  }

  // A client of a service that isn't there.
  static <T> T absent(Class<T> type) {
    return type.cast(Proxy.newProxyInstance(type.getClassLoader(), new Class<?>[] {type}, (self, method, args) -> {
      switch (method.getName()) {
        case "toString": return "absent";
        case "hashCode": return System.identityHashCode(self);
        case "equals": return self == args[0];
        case "close": return null;
        default: throw new UnsupportedOperationException(method.toString());
      }
    }));
  }

  static class Processor implements ShardRecordProcessor {
    final AtomicInteger has;

    Processor(AtomicInteger has) { this.has = has; }

    @Override public void initialize(InitializationInput in) { has.incrementAndGet(); }

    @Override public void processRecords(ProcessRecordsInput in) {}

    @Override public void leaseLost(LeaseLostInput in) { has.decrementAndGet(); }

    @Override public void shardEnded(ShardEndedInput in) {}

    @Override public void shutdownRequested(ShutdownRequestedInput in) {}
  }

  static class Detector implements ShardDetector {
    @Override public Shard shard(String id) {
      return SHARDS.stream().filter(s -> s.shardId().equals(id)).findFirst().orElse(null);
    }

    @Override public List<Shard> listShards() { return SHARDS; }

    @Override public List<Shard> listShardsWithFilter(ShardFilter filter) { return SHARDS; }

    @Override public StreamIdentifier streamIdentifier() { return STREAM; }
  }

  static class Retrieval implements RetrievalFactory {
    @Override public RecordsPublisher createGetRecordsCache(ShardInfo shard, StreamConfig stream, MetricsFactory metrics) {
      return new Nothing();
    }

    @Override public RecordsPublisher createGetRecordsCache(ShardInfo shard, MetricsFactory metrics) { return new Nothing(); }
  }

  // A shard that never has a record.
  static class Nothing implements RecordsPublisher {
    @Override public void start(ExtendedSequenceNumber from, InitialPositionInStreamExtended at) {}

    @Override public void restartFrom(RecordsRetrieved r) {}

    @Override public void shutdown() {}

    @Override public RequestDetails getLastSuccessfulRequestDetails() { return new RequestDetails(); }

    @Override public void subscribe(Subscriber<? super RecordsRetrieved> s) {
      s.onSubscribe(new Subscription() {
        @Override public void request(long n) {}

        @Override public void cancel() {}
      });
    }
  }
}
