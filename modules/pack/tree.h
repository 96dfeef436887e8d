/* modules/pack/tree.h: the modules that a packed library will carry: those of the libraries that are packed, merged around
 * one host library, and the models. Kinds and bodies point into what was merged, which outlives the tree. */
#ifndef HEDDLE_MODULES_PACK_TREE_H
#define HEDDLE_MODULES_PACK_TREE_H

#include "modules/pack/buffer.h"
#include "modules/tvm/blob.h"

typedef struct heddle__tree_node {
  const char *kind;
  heddle__span body;
  const char *model; /* its name; NULL: it is no model */
  uint32_t *children;
  uint32_t n_children, room;
} heddle__tree_node;

typedef struct heddle__tree {
  heddle__tree_node *nodes; /* the first is the host library */
  uint32_t n, room;
  heddle__buffer *made; /* bodies that were made here */
  uint32_t n_made;
} heddle__tree;

/* What of a library's models stays. */
typedef enum heddle__keep { HEDDLE__KEEP_ALL, HEDDLE__KEEP_NO_PARAMS, HEDDLE__KEEP_NO_MODELS } heddle__keep;

heddle_status heddle__tree_init(heddle__tree *t, heddle_error *err);
void heddle__tree_finish(heddle__tree *t);

/* A module as an import of the host library. */
heddle_status heddle__tree_import(heddle__tree *t, const char *kind, heddle__span body, heddle_error *err);

/* All modules of a library; where an application's loader saves modules, it writes them anew. */
heddle_status heddle__tree_merge(heddle__tree *t, const heddle__blob *blob, heddle__keep keep, heddle_error *err);

/* A model: its graph, and a blob of parameters as heddle_params_bytes gives (NULL: none). HEDDLE_EINVAL where there is one
 * of that name. */
heddle_status heddle__tree_model(heddle__tree *t, const char *name, heddle__span graph, heddle__span params,
                                 heddle_error *err);

/* Whether there is more than the host library. */
bool heddle__tree_carries(const heddle__tree *t);

/* The blob: a root that all others are below, each behind those that import it. Changes the tree; once. */
heddle_status heddle__tree_write(heddle__tree *t, heddle__blob_layout layout, heddle__buffer *out, heddle_error *err);

#endif
