/* graph/optimize/dead.c: nodes of the given graph that no output needs. Every plan leaves them out; here they are named, and
 * leave the graph. What other optimisations leave behind goes in the same way, unnamed. */
#include "graph/optimize/net.h"

bool opt_pass_dead(opt_net *net) {
  uint32_t n = 0;
  const opt_node **dead = net->told_dead ? NULL : opt_alloc(net, net->n_nodes, sizeof *dead);
  for (uint32_t i = 0; dead != NULL && i < net->n_nodes; i++)
    if (!net->nodes[i].live) dead[n++] = &net->nodes[i];
  if (n > 0) opt_note(net, "dead", dead, n, "left out: no output needs them");
  net->told_dead = true;
  return false; /* nothing for others to look at again */
}
