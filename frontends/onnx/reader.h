/* frontends/onnx/reader.h: what the files of the reader share: the state of one reading. A model is unpacked, its nodes
 * are brought to forms that a graph may have (upgrade.h), and nodes and tensors become a document of graph JSON and
 * parameters. Private to frontends/onnx. */
#ifndef HEDDLE_ONNX_READER_H
#define HEDDLE_ONNX_READER_H

#include <onnx.pb-c.h>

#include "frontends/onnx/arena.h"
#include "frontends/onnx/maps.h"
#include "graph/frontend.h"
#include "graph/opschema.h"

/* The versions of the file format that are read. */
#define HEDDLE__ONNX_IR_FIRST 1
#define HEDDLE__ONNX_IR_LAST 14

/* What is not supported: one entry for all nodes of an operator with the same words. */
typedef struct heddle__onnx_problems {
  struct heddle__onnx_kind_of_problem {
    char domain[44], op[44]; /* as shown; op "": it is of no node */
    char words[240], first[44];
    unsigned count;
  } kinds[16];
  unsigned n_kinds, n, n_left_out; /* left out: those of further kinds */
  char first_node[128];            /* of the first one; "": it is of no node */
} heddle__onnx_problems;

/* Names of a graph, or of a function, to names of the model; what is not in it is looked for further out. */
struct heddle__onnx_scope {
  json_t *names;
  const struct heddle__onnx_scope *outer;
};

typedef struct heddle__onnx_reader {
  const char *name;  /* the file's, for errors */
  const char *place; /* a path: weights outside of the model lie in its folder. NULL: they are refused */
  bool is_lent;      /* the model's bytes are the caller's: what is kept of them is copied */
  bool only_looks;   /* the parameters are of no use, so their bytes are not copied */
  heddle__onnx_maps *maps;
  const unsigned char *file; /* what heddle__onnx_raw counts in */
  uint64_t file_bytes;
  heddle__arena arena;
  heddle_error *err;

  const Onnx__ModelProto *model;
  Onnx__GraphProto *graph;
  int64_t opset;   /* of the model's default operators, or of the function's whose nodes are upgraded */
  uint32_t target; /* of the graph that is made */

  /* After the upgrade: */
  Onnx__NodeProto **nodes;
  size_t n_nodes, max_nodes;
  uint32_t left_to_inline;     /* nodes of functions: a file of a few bytes may ask for any number */
  Onnx__TensorProto **tensors; /* initialisers, and the constants that upgrades made */
  size_t n_tensors, max_tensors;
  json_t *tensor_at;                      /* name to position */
  json_t *types;                          /* name of a value to what is known of it, types.h */
  json_t *taken;                          /* names of values */
  json_t *used;                           /* names of values that a node or an output takes */
  const struct heddle__onnx_scope *scope; /* of the graph of a node that is being read; inner.c. NULL: of none */
  json_t *functions;                      /* "DOMAIN NAME" of the model's functions to their positions */
  json_t *sequences;                      /* what is in values that are no tensors; sequences.c */
  json_t *strings;                        /* texts that are numbers in the graph; strings.c */

  heddle__onnx_problems problems; /* what is not supported */
  json_t *warnings;               /* what is wrong, and read nevertheless: sentences */
} heddle__onnx_reader;

/* heddle__onnx_read from memory that outlives the parameters, where weights outside of it are refused. */
heddle_status heddle__onnx_parse(const void *data, uint64_t bytes, const char *name, const heddle_read_limits *limits,
                                 json_t **graph, heddle_params **params, heddle_error *err);

/* Fails with "FILE: " before the words. */
heddle_status heddle__onnx_fail(heddle__onnx_reader *r, heddle_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Memory is out, or the limit of the arena is reached. */
heddle_status heddle__onnx_no_memory(heddle__onnx_reader *r);

/* Notes that something is not supported; the reading goes on, and fails at its end with all of them. node may be NULL:
 * the words say what it is then. */
void heddle__onnx_problem(heddle__onnx_reader *r, const Onnx__NodeProto *node, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Notes that the file is wrong, in what can be read nevertheless: a model of it logs "FILE: " and the words. */
void heddle__onnx_warn(heddle__onnx_reader *r, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Fails with what was noted, or where memory was out; HEDDLE_OK where nothing was. */
heddle_status heddle__onnx_complain(heddle__onnx_reader *r);

/* A name from a file as it may be printed: at most 40 characters. Returns out. */
const char *heddle__onnx_show(const char *text, char out[44]);

/* A node's name, or where it has none, that of its first output. */
const char *heddle__onnx_node_name(const Onnx__NodeProto *node);

/* A name that is no key of names, which then has it: wish, or wish_1, wish_2, ... The value of a key is the number that
 * was tried last, so that a file of equal names costs no more than another. NULL where memory is out. */
const char *heddle__onnx_new_name(heddle__onnx_reader *r, json_t *names, const char *wish);

/* Adds to r->nodes or r->tensors. The tensor's name must be new. */
heddle_status heddle__onnx_add_node(heddle__onnx_reader *r, Onnx__NodeProto *node);
heddle_status heddle__onnx_add_tensor(heddle__onnx_reader *r, Onnx__TensorProto *tensor);

/* An initialiser that the graph has already, of the same type and shape: the last one counts, as in ONNX Runtime. false: it
 * has no such, and nothing was changed. */
bool heddle__onnx_give_again(heddle__onnx_reader *r, const char *name, Onnx__TensorProto *tensor);

/* The tensor that a value is, or NULL. */
const Onnx__TensorProto *heddle__onnx_find_tensor(const heddle__onnx_reader *r, const char *name);

/* Leaves out last outputs that are not used, but for the first `least`. */
void heddle__onnx_trim_outputs(const heddle__onnx_reader *r, Onnx__NodeProto *node, size_t least);

/* A node's inputs are values that are used. */
heddle_status heddle__onnx_note_inputs(heddle__onnx_reader *r, const Onnx__NodeProto *node);

/* sort.c: the nodes of a graph, and of the graphs within, to an order in which each comes after those whose values it takes;
 * a function's, too. HEDDLE_EFORMAT with the nodes where they form a cycle. */
heddle_status heddle__onnx_sort_graph(heddle__onnx_reader *r, Onnx__GraphProto *g);
heddle_status heddle__onnx_sort_function(heddle__onnx_reader *r, const Onnx__FunctionProto *f);

/* functions.c: makes function i of the model known; the one that a node calls, or NULL; and the function's nodes to
 * r->nodes, in its place, upgraded. depth counts functions within functions. A function may be of an opset of its own. */
heddle_status heddle__onnx_add_function(heddle__onnx_reader *r, const Onnx__FunctionProto *function, size_t i);
int64_t heddle__onnx_function_opset(const Onnx__FunctionProto *function, int64_t fallback);
const Onnx__FunctionProto *heddle__onnx_function(heddle__onnx_reader *r, const Onnx__NodeProto *node);
heddle_status heddle__onnx_inline(heddle__onnx_reader *r, const Onnx__NodeProto *node,
                                  const Onnx__FunctionProto *function, unsigned depth);

/* upgrade.c: a node to r->nodes, in forms of r->target; the nodes of its function where it calls one. */
heddle_status heddle__onnx_upgrade_node(heddle__onnx_reader *r, Onnx__NodeProto *node, unsigned depth);

/* upgrade.c: all nodes of the graph to r->nodes, in forms of r->target. */
heddle_status heddle__onnx_upgrade(heddle__onnx_reader *r);

/* document.c: r->nodes and r->tensors as a document and parameters. */
heddle_status heddle__onnx_document(heddle__onnx_reader *r, json_t **graph, heddle_params **params);

/* Whether one of a node's attributes is a graph: If, Loop, Scan. */
bool heddle__onnx_has_graph(const Onnx__NodeProto *node);

/* inner.c: whether it is an If, Loop or Scan; and such a node to r->nodes, with graphs that are upgraded too and take
 * nothing from outside but the node's last inputs, as many as its attribute "captured" says, of an If all but the first. */
bool heddle__onnx_is_control(const Onnx__NodeProto *node);
heddle_status heddle__onnx_control(heddle__onnx_reader *r, Onnx__NodeProto *node, unsigned depth);

/* versions.c: notes problems of a node that is not of the model's opset, or has attributes that the opset has not, or one
 * twice. is_call: it calls a function of the model, which may have any attributes. */
void heddle__onnx_check_node(heddle__onnx_reader *r, const Onnx__NodeProto *node, bool is_call);

/* Whether ONNX's operator has an attribute of that name in the model's opset. */
bool heddle__onnx_has_attr(const heddle__onnx_reader *r, const char *op, const char *name);

/* The opset of graphs that nodes of an opset are of; r->target may be a later one. */
static inline uint32_t heddle__onnx_base_of(int64_t opset) {
  return opset > HEDDLE__OPSET_FIRST ? (uint32_t)opset : HEDDLE__OPSET_FIRST;
}
static inline uint32_t heddle__onnx_base(const heddle__onnx_reader *r) {
  return heddle__onnx_base_of(r->opset);
}

/* versions.c: HEDDLE_ATTR_*, or a number that is none of them. */
uint32_t heddle__onnx_attr_kind(const Onnx__AttributeProto *a);

/* attrs.c: what an attribute is; files of the first formats leave the kind out. */
Onnx__AttributeProto__AttributeType heddle__onnx_kind(const Onnx__AttributeProto *a);

/* attrs.c: a node's attributes as a JSON object; NULL where memory is out. Attributes that cannot be written are noted
 * as problems. */
json_t *heddle__onnx_attrs(heddle__onnx_reader *r, const Onnx__NodeProto *node);

#endif
