/* graph/graph.h: the graph as data, as the rooms above see it: nodes, entries, attributes, constants.
 * Everything in it has been checked by the reader: indices are in range, inputs precede their node, sizes do not
 * overflow. A graph is immutable once read, and may be shared by threads. */
#ifndef HEDDLE_GRAPH_GRAPH_H
#define HEDDLE_GRAPH_GRAPH_H

#include <jansson.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "heddle/graph.h"

#define HEDDLE__MAX_NDIM 32

/* An entry: output index of a node, [-1, 0] in the file is node UINT32_MAX here: an absent input. */
typedef struct heddle__entry {
  uint32_t node;
  uint32_t index;
} heddle__entry;

#define HEDDLE__ABSENT UINT32_MAX

/* A dimension: value >= 0, or -1 with the name of a symbol (owned), or -1 with NULL: unknown. */
typedef struct heddle__dim {
  int64_t value;
  char *symbol;
} heddle__dim;

/* What a file says of an entry; of a head, what inference found where the file says nothing. Which members there are: has_*. */
typedef struct heddle__type {
  bool has_dtype;
  bool has_shape;
  bool infers_dtype; /* it was found, and is not written */
  bool infers_shape;
  bool hints_shape; /* the shape that the file gives may be wrong */
  heddle_dtype dtype;
  uint32_t ndim;
  heddle__dim *dims;
  int64_t *shape;       /* of inputs and heads: the values of dims, and their symbols, for heddle_value_info */
  const char **symbols; /* in the same block; not to be freed */
} heddle__type;

typedef enum heddle__node_kind {
  HEDDLE__NODE_NULL, /* input or parameter */
  HEDDLE__NODE_OP,   /* an operator by name, with attrs */
  HEDDLE__NODE_TVM   /* op "tvm_op": calls func_name of a library; __nop and __copy among them */
} heddle__node_kind;

typedef struct heddle__node {
  heddle__node_kind kind;
  char *name;
  char *op;     /* "null", "tvm_op", "Conv" */
  char *domain; /* "" is ONNX's own */
  heddle__entry *inputs;
  uint32_t n_inputs;
  uint32_t n_outputs;
  uint32_t first_entry; /* entry id of output 0 */
  heddle_pattr *attrs;  /* of an operator, owned: names, data */
  uint32_t n_attrs;
  struct heddle__inner { /* attributes that are graphs: of If, Loop and Scan; owned */
    char *name;
    heddle_graph *graph; /* is_inner; its args are what the operator gives it, and then what it takes from outside */
  } * inner;
  uint32_t n_inner;
  char *device;   /* annotation, or NULL */
  int64_t stream; /* annotation, or -1 */
  /* tvm_op */
  char *func_name;
  bool flatten_data;
  bool borrowed; /* all but inputs belongs to another graph, which this one holds: base */
  json_t *raw;   /* the node's object as it was read: what the writer keeps beyond the above (hash, control_deps) */
} heddle__node;

/* The bytes of a constant, row-major, aligned to 64; those that are mapped from a file, to their element's size. */
typedef struct heddle__constant {
  uint32_t node; /* a null node */
  heddle_dtype dtype;
  uint32_t ndim;
  int64_t *shape;
  void *data;
  uint64_t bytes;
} heddle__constant;

struct heddle_graph {
  atomic_uint references;
  char *source;      /* file name or what the caller called it, for errors */
  bool is_heddle;    /* the "heddle" object was there */
  bool is_inner;     /* an attribute of a node: dtypes and shapes of its args need not be known */
  bool hints_shapes; /* shapes that it declares of operators' outputs are hints: what an operator gives counts */
  uint32_t opset;    /* of domain ""; 0 in TVM's graphs */
  heddle__node *nodes;
  uint32_t n_nodes;
  uint32_t n_entries;
  heddle__type *types;   /* one per entry */
  int32_t *storage_id;   /* one per entry, or NULL */
  int32_t *device_index; /* one per entry (DLPack device types), or NULL */
  char **storage_scope;  /* one per entry, or NULL */
  uint32_t *args;        /* null nodes in order: the graph's inputs, parameters included */
  uint32_t n_args;
  heddle__entry *heads;
  uint32_t n_heads;
  json_t *raw;        /* what the reader did not use, for the writer */
  json_t *warnings;   /* sentences about the file, for the log of who makes a model of it; or NULL */
  heddle_graph *base; /* that nodes borrow from; one reference, or NULL */
  struct heddle__name {
    const char *name; /* of the node */
    uint32_t node;
    int32_t arg; /* its position in args, or -1 */
  } * names;     /* all nodes, by name and then by id */
};

static inline uint32_t heddle__entry_id(const heddle_graph *g, heddle__entry e) {
  return g->nodes[e.node].first_entry + e.index;
}

#define HEDDLE__UNALIGNED_BYTES (UINT64_C(256) << 10)

/* Bytes of a file, and what distinguishes the file from any other and from its state before a change. No padding. */
typedef struct heddle__file_place {
  uint64_t device, inode, size, offset, bytes;
  int64_t changed[4]; /* seconds and nanoseconds, of its bytes and of its entry */
} heddle__file_place;

/* A set of named constants: what a params blob holds. Large ones that are mapped (HEDDLE__UNALIGNED_BYTES) may lie at any
 * address, as they do in the file: who reads numbers of them copies. */
struct heddle_params {
  atomic_uint references;
  char *source;
  struct heddle__param {
    char *name;
    heddle__constant value;  /* node is not used */
    heddle_dtype file_dtype; /* as the blob has it: bool is (1, 1, 1) in older ones, and written back so */
    bool is_mapped;          /* its data is of maps */
  } * items;
  uint32_t count;
  void *maps; /* files whose bytes items share; unmap lets go of them */
  void (*unmap)(void *maps);
  /* Bytes that need not stay in memory, since what was made of them will be used: nothing is done unless they lie in
   * maps. They may be read again. NULL where there are no maps. */
  void (*forget)(void *maps, const void *data, uint64_t bytes);
  /* Where bytes lie; false where in none of the maps, or in a file that was changed so lately that it may have been
   * changed again without a trace. NULL where there are no maps. */
  bool (*where)(void *maps, const void *data, uint64_t bytes, heddle__file_place *out);
  struct heddle__carried *carried; /* graph/prepared.h; of maps, or NULL */
};

/* Whether some node of the graph runs a graph of its own. */
bool heddle__graph_has_inner(const heddle_graph *g);

/* Whether an element of a constant can be read where it lies. */
static inline bool heddle__constant_aligned(const heddle__constant *c) {
  return c->dtype.bits < 16 || (uintptr_t)c->data % (c->dtype.bits / 8) == 0;
}

/* A constant as a tensor that cannot be written to: its own bytes, and then *shares is true and release(user) is called
 * at the tensor's end; or a copy, where they are not aligned. */
heddle_status heddle__constant_tensor(const heddle__constant *c, heddle_release_fn release, void *user, bool *shares,
                                      heddle_tensor **out, heddle_error *err);

/* Params without items, with one reference; NULL where memory is out. */
heddle_params *heddle__params_new(const char *source, heddle_error *err);

/* HEDDLE_EFORMAT where two have one name. */
heddle_status heddle__params_check_names(const heddle_params *p, heddle_error *err);

/* Position in args of the input of that name; -1 none, -2 more than one. */
int32_t heddle__graph_arg(const heddle_graph *g, const char *name);

/* Node by name: HEDDLE_ENOTFOUND, or HEDDLE_EINVAL with the node ids where several share it. */
heddle_status heddle__graph_find(const heddle_graph *g, const char *name, uint32_t *out, heddle_error *err);

#endif
