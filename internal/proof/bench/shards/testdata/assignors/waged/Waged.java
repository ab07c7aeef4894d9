package org.apache.helix.controller.rebalancer.waged.model;

import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.helix.controller.rebalancer.waged.RebalanceAlgorithm;
import org.apache.helix.controller.rebalancer.waged.constraints.ConstraintBasedAlgorithmFactory;
import org.apache.helix.model.ClusterConfig;
import org.apache.helix.model.InstanceConfig;
import org.apache.helix.model.Partition;
import org.apache.helix.model.ResourceAssignment;
import org.apache.helix.model.ResourceConfig;

// Helix's weight-aware rebalancer (WAGED): its algorithm, with preferences for evenness and for few moves. By default both are 1. The
// last assignment is the baseline as well as the best possible one. The model's constructors are its package's own, so this is in it.
public class Waged {
  private static final String KEY = "LOAD";
  private static final int SCALE = 10; // weights are whole numbers
  private final RebalanceAlgorithm algorithm;
  private Map<String, ResourceAssignment> last = new HashMap<>();

  public Waged(int evenness, int fewMoves) {
    algorithm = ConstraintBasedAlgorithmFactory.getInstance(Map.of(
        ClusterConfig.GlobalRebalancePreferenceKey.EVENNESS, evenness, ClusterConfig.GlobalRebalancePreferenceKey.LESS_MOVEMENT, fewMoves));
  }

  public int[] assign(List<Integer> workers, double[] loads) throws Exception {
    ClusterConfig cluster = new ClusterConfig("c");
    cluster.setInstanceCapacityKeys(List.of(KEY));
    cluster.setMaxPartitionsPerInstance(-1);
    cluster.setTopologyAwareEnabled(false);
    Set<AssignableNode> nodes = new HashSet<>();
    for (int w : workers) {
      InstanceConfig config = new InstanceConfig("w" + w);
      config.setInstanceCapacityMap(Map.of(KEY, 1_000_000));
      nodes.add(new AssignableNode(cluster, config, "w" + w));
    }
    ResourceConfig resource = new ResourceConfig("r");
    Map<String, Map<String, Integer>> weights = new HashMap<>();
    for (int p = 0; p < loads.length; p++) weights.put("p" + p, Map.of(KEY, (int) Math.round(loads[p] * SCALE)));
    weights.put("DEFAULT", Map.of(KEY, 0));
    resource.setPartitionCapacityMap(weights);
    Set<AssignableReplica> replicas = new HashSet<>();
    for (int p = 0; p < loads.length; p++) replicas.add(new AssignableReplica(cluster, resource, "p" + p, "ONLINE", 1));
    ClusterContext context = new ClusterContext(replicas, nodes, last, last, cluster);
    last = algorithm.calculate(new ClusterModel(context, replicas, nodes)).getOptimalResourceAssignment();
    int[] owners = new int[loads.length];
    for (int p = 0; p < loads.length; p++) {
      String w = last.get("r").getReplicaMap(new Partition("p" + p)).keySet().iterator().next();
      owners[p] = Integer.parseInt(w.substring(1));
    }
    return owners;
  }
}
