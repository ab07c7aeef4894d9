import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import org.apache.helix.controller.dataproviders.ResourceControllerDataProvider;
import org.apache.helix.controller.rebalancer.strategy.AutoRebalanceStrategy;
import org.apache.helix.controller.rebalancer.waged.model.Waged;
import org.apache.helix.model.BuiltInStateModelDefinitions;
import org.apache.helix.model.IdealState;
import org.apache.helix.model.StateModelDefinition;
import org.apache.helix.zookeeper.datamodel.ZNRecord;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Assignment;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.GroupSubscription;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;

// Reads a trace, and writes who owns each part after each round: a line each. A line of the trace is the workers that are up and the
// loads of all parts: "0,2,3 12.5,7.1,…". The first argument is the
// assignor: kafka, helix or waged; the others are its preferences.
public class Assignors {
  interface Assignor {
    int[] assign(List<Integer> workers, double[] loads) throws Exception;
  }

  public static void main(String[] args) throws Exception {
    Assignor a;
    switch (args[0]) {
      case "kafka": a = new Kafka(); break;
      case "helix": a = new Helix(); break;
      default: a = new Waged(Integer.parseInt(args[1]), Integer.parseInt(args[2]))::assign;
    }
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
    for (String line; (line = in.readLine()) != null; ) {
      String[] f = line.split(" ");
      List<Integer> workers = new ArrayList<>();
      for (String w : f[0].split(",")) workers.add(Integer.parseInt(w));
      double[] loads = Arrays.stream(f[1].split(",")).mapToDouble(Double::parseDouble).toArray();
      int[] owners = a.assign(workers, loads);
      StringBuilder b = new StringBuilder();
      for (int o : owners) b.append(b.length() == 0 ? "" : ",").append(o);
      System.out.println("owners " + b);
    }
  }

  // Kafka's cooperative sticky assignor, rebalanced until nobody has to give anything up any more, as a group does.
  static class Kafka implements Assignor {
    final CooperativeStickyAssignor assignor = new CooperativeStickyAssignor();
    Map<Integer, List<TopicPartition>> owned = new HashMap<>();
    int generation = 0;

    public int[] assign(List<Integer> workers, double[] loads) {
      Node node = new Node(0, "localhost", 1);
      List<PartitionInfo> infos = new ArrayList<>();
      for (int p = 0; p < loads.length; p++) infos.add(new PartitionInfo("t", p, node, new Node[] {node}, new Node[] {node}));
      Cluster cluster = new Cluster("c", List.of(node), infos, java.util.Set.of(), java.util.Set.of());
      owned.keySet().retainAll(workers);
      for (int tries = 0; tries < 10; tries++) {
        Map<String, Subscription> members = new LinkedHashMap<>();
        for (int w : workers) {
          members.put("w" + w, new Subscription(List.of("t"), null, owned.getOrDefault(w, List.of()), generation, Optional.empty()));
        }
        Map<String, Assignment> got = assignor.assign(cluster, new GroupSubscription(members)).groupAssignment();
        generation++;
        int n = 0;
        for (int w : workers) {
          owned.put(w, got.get("w" + w).partitions());
          n += owned.get(w).size();
        }
        if (n == loads.length) break;
      }
      int[] owners = new int[loads.length];
      Arrays.fill(owners, -1);
      owned.forEach((w, all) -> all.forEach(p -> owners[p.partition()] = w));
      return owners;
    }
  }

  // Helix's AutoRebalanceStrategy: FULL_AUTO without weights.
  static class Helix implements Assignor {
    Map<String, Map<String, String>> current = new TreeMap<>();

    public int[] assign(List<Integer> workers, double[] loads) {
      List<String> parts = new ArrayList<>(), all = new ArrayList<>(), live = new ArrayList<>();
      for (int p = 0; p < loads.length; p++) parts.add("p" + p);
      for (int w = 0; w < 8; w++) all.add("w" + w);
      for (int w : workers) live.add("w" + w);
      current.values().forEach(m -> m.keySet().retainAll(live));
      LinkedHashMap<String, Integer> states = new LinkedHashMap<>();
      states.put("ONLINE", 1);
      AutoRebalanceStrategy s = new AutoRebalanceStrategy("r", parts, states);
      ZNRecord got = s.computePartitionAssignment(all, live, current, new Resource());
      int[] owners = new int[loads.length];
      current = new TreeMap<>();
      for (int p = 0; p < loads.length; p++) {
        String w = got.getListField("p" + p).get(0);
        owners[p] = Integer.parseInt(w.substring(1));
        current.put("p" + p, new HashMap<>(Map.of(w, "ONLINE")));
      }
      return owners;
    }
  }

  // All that the strategy asks of the controller: one replica of each part.
  static class Resource extends ResourceControllerDataProvider {
    @Override public IdealState getIdealState(String name) {
      IdealState s = new IdealState(name);
      s.setReplicas("1");
      s.setStateModelDefRef(BuiltInStateModelDefinitions.OnlineOffline.name());
      return s;
    }

    @Override public StateModelDefinition getStateModelDef(String name) {
      return BuiltInStateModelDefinitions.OnlineOffline.getStateModelDefinition();
    }
  }
}
