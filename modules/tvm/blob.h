/* modules/tvm/blob.h: the modules that a compiled library carries in its data: device code, models, constants, and how
 * they import one another. A blob is untrusted: every count is checked against the bytes that are left. */
#ifndef HEDDLE_MODULES_TVM_BLOB_H
#define HEDDLE_MODULES_TVM_BLOB_H

#include <stdbool.h>

#include "heddle/status.h"

/* How the records of a blob lie. */
typedef enum heddle__blob_layout {
  HEDDLE__BLOB_PACKED, /* v0.3 to v0.20: __tvm_dev_mblob */
  HEDDLE__BLOB_FFI21,  /* v0.21: the same, with one more list a kernel */
  HEDDLE__BLOB_FFI     /* v0.22 and later: the tree first, and a length before each body */
} heddle__blob_layout;

/* What an application's loader made of a module (loaders.h). */
typedef struct heddle__loaded heddle__loaded;

/* Who reads modules of kinds that are not known here. */
typedef struct heddle__blob_loaders {
  /* bytes: up to the end of the module where the blob says how long it is, else up to the end of the blob; *used: those
   * that are the module's, at most bytes. *out: ended by release. Errors name the kind. */
  heddle_status (*load)(const char *kind, const unsigned char *data, uint64_t bytes, uint64_t *used,
                        heddle__loaded **out, heddle_error *err);
  void (*release)(heddle__loaded *module); /* takes NULL */
} heddle__blob_loaders;

typedef struct heddle__span {
  const unsigned char *data;
  uint64_t bytes;
} heddle__span;

typedef struct heddle__kernel {
  char *name;
  uint32_t n_args;            /* of the kernel itself */
  uint32_t n_tags;            /* launch parameters, repeated ones too */
  const unsigned char *types; /* 4 bytes an argument: code, bits, lanes; in the blob */
  const unsigned char *tags;  /* strings, each with its length before it; in the blob */
  const unsigned char *words; /* of vulkan: its SPIR-V in the blob; NULL: its module has none for it */
  uint64_t n_words;
} heddle__kernel;

/* Spans point into the blob. */
typedef struct heddle__submodule {
  char *kind;
  char *format; /* "" where the kind has none */
  heddle__kernel *kernels;
  uint32_t n_kernels;
  uint32_t first_child, n_children; /* in blob.children */
  heddle__span body;                /* all of it, behind its kind and its length */
  heddle__span code;
  heddle__loaded *loaded; /* of a kind that is not known here; else NULL */
  /* of a model, and of constants: */
  heddle__span graph, names, arrays; /* names: a u64 count and the strings; arrays: their records */
  char *model_name;
  uint64_t n_arrays;
  /* of constants: */
  uint64_t n_symbols;
  heddle__span symbols; /* strings, each with its length before it */
  heddle__span takes;   /* for each symbol the names of its constants: a u64 count and the strings */
} heddle__submodule;

typedef struct heddle__blob {
  heddle__submodule *modules;
  uint32_t n_modules;
  uint32_t root; /* where there are none: 0 */
  uint32_t host; /* the module "_lib"; n_modules where all are imports of the library */
  uint32_t *children;
  const heddle__blob_loaders *loaders;
} heddle__blob;

/* Reads a blob of bytes bytes, from its length word on; they outlive it. HEDDLE_EFORMAT with the byte and what was
 * expected there; HEDDLE_EUNSUPPORTED for a kind of module that is not known, by name, where loaders (NULL: there are none)
 * do not take it. out is finished with heddle__blob_finish in any case. */
heddle_status heddle__blob_read(const void *data, uint64_t bytes, heddle__blob_layout layout,
                                const heddle__blob_loaders *loaders, heddle__blob *out, heddle_error *err);
void heddle__blob_finish(heddle__blob *blob);

/* Whether modules of a kind are read here. */
bool heddle__blob_knows(const char *kind);

/* Modules in the order in which functions are looked for: below the host library depth first, then the others depth
 * first from the root; the host is not among them. order has room for all; gives how many there are. HEDDLE_ENOMEM. */
heddle_status heddle__blob_order(const heddle__blob *blob, uint32_t *order, uint32_t *n, heddle_error *err);

#endif
