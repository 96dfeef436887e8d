/* graph/optimize/net.h: a graph while it is rewritten: nodes in an order that their inputs allow, values with the node that
 * makes them, one arena for all of it. What the given graph has is borrowed from it.
 *
 * A node is changed where it stands, so that its outputs, its name and all who use them stay: what was between it and
 * its new inputs loses its users, and is left out when the graph is written. */
#ifndef HEDDLE_GRAPH_OPTIMIZE_NET_H
#define HEDDLE_GRAPH_OPTIMIZE_NET_H

#include <string.h>

#include "core/arena.h"
#include "graph/optimize/optimize.h"

/* What one optimisation did once: the nodes of the given graph that it took, and what became of them, as text. */
typedef struct opt_change {
  const char *pass;
  const char *words;
  const char *const *nodes;
  uint32_t n_nodes;
} opt_change;

struct opt_node;

typedef struct opt_value {
  struct opt_node *maker;           /* NULL: an arg, or a constant that was made */
  uint32_t index;                   /* which output of its maker */
  uint32_t arg;                     /* of the given graph, else HEDDLE__ABSENT */
  struct opt_value *instead;        /* this one is not used any more; see opt_in */
  const char *name;                 /* without a maker */
  const heddle__constant *constant; /* its bytes, where they are known; see opt_bytes */
  uint32_t users;                   /* inputs of live nodes; at least as many, between two counts */
  uint32_t number;                  /* while a graph is written */
  bool pinned;                      /* an output or a kept value: its node keeps making it */
  bool known;                       /* dtype and shape below hold */
  heddle_dtype dtype;
  uint32_t ndim;
  int64_t *shape;
  uint64_t bytes;
  uint32_t said; /* of an arg: 1 + the number of dimensions that the graph gives it; 0: none */
  bool typed;    /* of an arg: dtype holds */
} opt_value;

typedef struct opt_node {
  const heddle__node *from; /* of the given graph; NULL once op, domain or attributes differ */
  const char *name;
  const char *op;
  const char *domain;
  const heddle_pattr *attrs;
  opt_value **inputs; /* NULL for an absent one; read by opt_in */
  opt_value *outputs;
  uint32_t n_attrs;
  uint32_t n_inputs;
  uint32_t n_outputs;
  uint32_t home;
  uint32_t id;   /* in the given graph */
  uint32_t mark; /* of a pass, for itself */
  bool live;
  bool unfoldable;    /* fold has tried */
  const char *device; /* annotations */
  int64_t stream;
} opt_node;

typedef struct opt_net {
  const heddle__optimize_ask *ask;
  const heddle_graph *graph;
  heddle__arena arena;
  opt_node *nodes; /* of the given graph's operators */
  uint32_t n_nodes, nodes_size;
  uint32_t opset;
  opt_value *args;
  uint32_t n_args;
  opt_value **made; /* constants */
  uint32_t n_made, made_size;
  bool *read;
  opt_value **heads;
  uint32_t n_heads;
  opt_value **keep;
  opt_change *changes;
  uint32_t n_changes, changes_size;
  uint64_t folded_bytes;
  uint32_t failures; /* of fold */
  bool told_dead;
  bool folds_each; /* together they could not be computed */
  bool wrong;      /* a node whose inputs do not fit: the graph is left as it is, for planning to report it */
  bool failed;     /* memory ran out */
} opt_net;

/* ---- net.c: the arena, the way in, users and types */

/* Zeroed; NULL, and net->failed, where memory is out. */
void *opt_alloc(opt_net *net, size_t count, size_t size);
char *opt_format(opt_net *net, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* net->ask is set. HEDDLE_ENOMEM. */
heddle_status opt_read(opt_net *net, heddle_error *err);
void opt_free(opt_net *net);

/* Which nodes are needed, and how often each value is used. Nodes that lost their users are dead from here on. */
void opt_count(opt_net *net);

/* dtype and shape of every value, as far as they follow from what the graph and the constants say. */
void opt_types(opt_net *net);

/* Input k as it is now; NULL where it is absent or there are not as many. */
opt_value *opt_in(const opt_node *n, uint32_t k);

/* Keeps the count of users at least as high as it is. */
void opt_set_input(opt_node *n, uint32_t k, opt_value *v);

/* All users of old use v from now on. old is not pinned. */
void opt_replace(opt_value *old, opt_value *v);

/* Makes another operator of a node: all inputs and attributes are given anew. attrs are of opt_attr_*. */
bool opt_become(opt_net *net, opt_node *n, const char *domain, const char *op, opt_value *const *inputs,
                uint32_t n_inputs, const heddle_pattr *attrs, uint32_t n_attrs);

/* A new node before one, in whose place it will run, for opt_become; gives its result. Nodes move: pointers to them are not valid
 * any more, but those in values. NULL where memory is out. */
opt_value *opt_insert(opt_net *net, const opt_node *before, const char *what);

/* Attributes for opt_become; memory is the arena's. */
heddle_pattr opt_attr_int(opt_net *net, const char *name, int64_t value);
heddle_pattr opt_attr_float(opt_net *net, const char *name, double value);
heddle_pattr opt_attr_ints(opt_net *net, const char *name, const int64_t *values, uint32_t count);
heddle_pattr opt_attr_string(opt_net *net, const char *name, const char *value);

/* A new constant; *bytes is where its bytes go, row-major. NULL where memory is out. */
opt_value *opt_constant(opt_net *net, const char *name, heddle_dtype dtype, const int64_t *shape, uint32_t ndim,
                        void **bytes);

/* Writes down what a pass did to n_nodes nodes. */
void opt_note(opt_net *net, const char *pass, const opt_node *const *nodes, uint32_t n_nodes, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

/* The opset of domain "" becomes at least this one, if all live nodes mean the same in it; false where they do not. */
bool opt_raise_opset(opt_net *net, uint32_t opset);
bool opt_raise_for(opt_net *net, const char *op); /* to one that has the operator */

/* ---- match.c: questions about nodes and values */

bool opt_is(const opt_node *n, const char *op);          /* of domain ""; n may be NULL */
opt_node *opt_maker(const opt_value *v, const char *op); /* the node of that operator that makes it, or NULL */
const heddle_pattr *opt_attr(const opt_node *n, const char *name);
int64_t opt_get_int(const opt_node *n, const char *name, int64_t fallback);
double opt_get_float(const opt_node *n, const char *name, double fallback);
const int64_t *opt_get_ints(const opt_node *n, const char *name, uint64_t *count);

/* Only one input of one node uses it, and no caller reads it. */
bool opt_is_inner(const opt_value *v);

/* The one node that uses a value; NULL where there are others. */
opt_node *opt_only_user(opt_net *net, const opt_value *v);

/* The result of n, or of Where(IsNaN(result), 0, result), where that is all that uses it: rows of which nothing is left are 0. */
opt_value *opt_guarded(opt_net *net, opt_node *n);

bool opt_same_home(const opt_node *a, const opt_node *b);

/* The bytes of a constant, those of large ones at any address; NULL where it is none. From here on the rewriting is built
 * on them. */
const void *opt_bytes(opt_net *net, const opt_value *v);

/* A constant of one float32, float64, int32 or int64. */
bool opt_number(opt_net *net, const opt_value *v, double *out);

/* The integers of a constant of int64 or int32 of at most HEDDLE__MAX_NDIM elements and one dimension, or none. */
bool opt_ints(opt_net *net, const opt_value *v, int64_t *out, uint32_t *count);

bool opt_same_shape(const opt_value *a, const opt_value *b);
bool opt_is_float32(const opt_value *v);

/* The number of dimensions, which may be known where the shape is not; UINT32_MAX: it is not. */
uint32_t opt_rank(const opt_value *v);

/* The type of its elements, in the same way. */
bool opt_dtype(const opt_value *v, heddle_dtype *out);
uint64_t opt_elements(const opt_value *v); /* of a known one */

/* One output, and the operator works on each element for itself: Relu, Add, Where. */
bool opt_is_elementwise(const opt_node *n);

/* The same inputs give the same results: the operator draws no random numbers, and runs no graphs. */
bool opt_repeats(const opt_node *n);

/* ---- write.c */

/* A graph of the live nodes, its args as heddle__optimized has them. */
heddle_status opt_write(opt_net *net, heddle_graph **out, heddle_error *err);

/* A graph of some nodes alone, in order: its args are the n_from values named c0, c1, ..., its heads n_to values that
 * the nodes make. */
heddle_status opt_write_part(opt_net *net, opt_node *const *nodes, uint32_t n_nodes, opt_value *const *from,
                             uint32_t n_from, opt_value *const *to, uint32_t n_to, heddle_graph **out,
                             heddle_error *err);

/* ---- tell.c: what was done, for the log, and for plans: o->changes, which is a reference, and o->text */

void opt_log(const opt_net *net);
heddle_status opt_tell(opt_net *net, heddle__optimized *o, heddle_error *err);

/* ---- the passes, a file each: true where something was changed. Memory that runs out is in net->failed. */

bool opt_pass_dead(opt_net *net);
bool opt_pass_fold(opt_net *net);
bool opt_pass_identity(opt_net *net);
bool opt_pass_cse(opt_net *net);
bool opt_pass_reshapes(opt_net *net);
bool opt_pass_transposes(opt_net *net);
bool opt_pass_conv(opt_net *net);
bool opt_pass_gemm(opt_net *net);
bool opt_pass_quantized(opt_net *net);
bool opt_pass_activation(opt_net *net);
bool opt_pass_layer_norm(opt_net *net);
bool opt_pass_rms_norm(opt_net *net); /* layer_norm.c */
bool opt_pass_attention(opt_net *net);
bool opt_take_attention_apart(opt_net *net); /* attention_parts.c: the first step of it */
bool opt_pass_rotary(opt_net *net);
bool opt_pass_grouped(opt_net *net);

#endif
