/* tools/compare_part.h: parts of a graph as graphs of their own: a row of nodes whose inputs are given as values, made,
 * run on a device and written to files. A node alone is a part of one. */
#ifndef HEDDLE_TOOLS_COMPARE_PART_H
#define HEDDLE_TOOLS_COMPARE_PART_H

#include <jansson.h>

#include "session.h"

/* The graph that is taken apart: its JSON, and for each output of each node (an entry, as node_row_ptr counts them) the
 * value that the walk has of it. */
typedef struct whole {
  json_t *document;
  json_t *nodes; /* borrowed from the document, as attrs is */
  json_t *attrs;
  uint32_t n_nodes, n_entries;
  uint32_t *first;        /* entry of each node's first output; n_nodes + 1 members */
  uint32_t *owner;        /* node of each entry */
  uint32_t *rank;         /* how many nodes before each one are no inputs; n_nodes + 1 members */
  uint32_t *entry_rank;   /* how many entries before each one are of such nodes; n_entries + 1 members */
  heddle_tensor **values; /* NULL: not known yet, or not needed any more */
  bool *constant;         /* the same in every run */
  uint32_t *last_use;     /* the node that reads it last; 0: none; n_nodes: it is an output */
  bool calls_library;     /* has nodes that are compiled functions */
} whole;

heddle_status whole_read(const heddle_graph *g, whole *out, heddle_error *err);
void whole_finish(whole *w);

bool whole_is_input(const whole *w, uint32_t node);
const char *whole_name(const whole *w, uint32_t node);
/* The operator, or the compiled function. */
const char *whole_op(const whole *w, uint32_t node);
/* Operand k of a node as an entry; UINT32_MAX: it is absent. */
uint32_t whole_operand(const whole *w, uint32_t node, uint32_t k);
/* Of what stands for an entry in the JSON: [node, output]. */
uint32_t whole_entry(const whole *w, const json_t *entry);
uint32_t whole_operands(const whole *w, uint32_t node);

/* Nodes begin to end - 1 of the whole, inputs among them left out, as a graph. Its inputs are the entries that they take from elsewhere, named in0,
 * in1, ...; its outputs are all outputs of its nodes. */
typedef struct part {
  uint32_t begin, end;
  const bool *chosen; /* per node: it is of the part; NULL: all from begin to end - 1 are. The caller's */
  const bool *heads;  /* per entry: it is an output; NULL: all of the part's nodes are. The caller's */
  json_t *document;
  uint32_t *inputs; /* entries; their values must be known */
  uint32_t n_inputs;
} part;

/* How many outputs it has. */
uint32_t part_outputs(const whole *w, const part *p);

heddle_status part_make(const whole *w, uint32_t begin, uint32_t end, part *out, heddle_error *err);
/* The same of some nodes, of which heads (or NULL) are the outputs. */
heddle_status part_choose(const whole *w, const bool *chosen, const bool *heads, part *out, heddle_error *err);
void part_finish(part *p);

/* Where a part ran. */
typedef struct part_place {
  char device[32];  /* of its first node; "" where the plan does not specify it */
  uint32_t largest; /* nodes of the largest region */
} part_place;

/* Runs a part on the devices of a session, with the values of the whole; constants among them are parameters. out has
 * room for all its outputs. place may be NULL. */
heddle_status part_run(const session *s, const whole *w, const part *p, heddle_tensor **out, part_place *place,
                       heddle_error *err);

/* The plan of a part, as heddle_executor_explain gives it in JSON, for the caller to release; NULL where there is none. Its
 * nodes are numbered from the part's inputs on, in the order of the whole. */
heddle_status part_plan(const session *s, const whole *w, const part *p, json_t **out, heddle_error *err);

/* Whether a node computes a value that a node outside of the set, or the whole, reads. */
bool part_leaves(const whole *w, const bool *chosen, uint32_t entry);

/* Writes a part as FOLDER/node.json, its constants beside it as node.params, its inputs as FOLDER/in0.npy, ... and the
 * outputs that are given as FOLDER/expected_0.npy, ... */
heddle_status part_save(const whole *w, const part *p, heddle_tensor *const *expected, const char *folder,
                        heddle_error *err);

#endif
