/* Chains: regions that are one elementwise expression on float32, be it the operator FusedElementwise or several ordinary
 * nodes, and which nodes of a large region are worth having together so. For any plugin; includes plugin.h only. */
#ifndef HEDDLE_PLUGINS_COMMON_CHAIN_H
#define HEDDLE_PLUGINS_COMMON_CHAIN_H

#include "expr.h"

enum { HEDDLE_CHAIN_DIMS = 16 };

/* How an input is read. WALKED: with its strides. */
enum { HEDDLE_CHAIN_DENSE, HEDDLE_CHAIN_SINGLE, HEDDLE_CHAIN_WALKED };

/* A region as an expression. Dimensions are those of the result, without those of length 1, and joined where all inputs
 * walk them in one stride; strides are in elements. Points into the region. */
typedef struct heddle_chain {
  expr program;
  const heddle_pnode *node; /* the one that gives the result, for error texts */
  const heddle_pvalue *out;
  uint64_t count; /* elements of the result */
  int32_t dims;
  uint32_t walked; /* inputs of that kind */
  int64_t dim[HEDDLE_CHAIN_DIMS];
  uint32_t slot[EXPR_INPUTS]; /* region input of each of the program's */
  uint32_t kind[EXPR_INPUTS];
  int64_t stride[EXPR_INPUTS][HEDDLE_CHAIN_DIMS];
} heddle_chain;

/* Reads a region. Its nodes are in topological order and have one result in all; values between them have the result's
 * shape. Constants of one element become numbers of the program where there is room. HEDDLE_EUNSUPPORTED with node,
 * operator and why. Pure. Any thread. */
heddle_status heddle_chain_read(const heddle_pregion *region, heddle_chain *out, heddle_error *err);

/* Region inputs that became numbers: flags[0..n_inputs) gets HEDDLE_INPUT_ABSORBED for them, 0 for the others. */
void heddle_chain_flags(const heddle_pregion *region, const heddle_chain *chain, uint32_t *flags);

/* May the result of the chain be written over input k? */
bool heddle_chain_in_place(const heddle_pregion *region, const heddle_chain *chain, uint32_t k);

/* The setting fuse: does the user want chains? A word of setting.h, on where it is not given; else HEDDLE_EINVAL. */
heddle_status heddle_chain_wanted(const heddle_host *host, bool *out, heddle_error *err);

/* For heddle_op_table.partition: proposes every chain of two and more nodes. taken has one byte a node: nodes that are
 * set are left alone, nodes that were proposed get set. What is proposed, heddle_chain_read takes. Time grows with the
 * number of nodes; scratch memory through host. Any thread. */
heddle_status heddle_chain_propose(const heddle_host *host, const heddle_pregion *region, unsigned char *taken,
                                   heddle_propose_fn propose, void *sink, heddle_error *err);

#endif
