/* heddle/pack.h: models written as one file: compiled libraries with the graphs and parameters that run on them, in TVM's
 * single-library form; or a graph of operators with its parameters. docs/packages.md describes the files. */
#ifndef HEDDLE_PACK_H
#define HEDDLE_PACK_H

#include "heddle/device.h"
#include "heddle/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The first eight bytes of a file with a graph of operators. */
#define HEDDLE_PACK_MAGIC "\211HDLPK\r\n"

/* A model that is packed. struct_size is sizeof. */
typedef struct heddle_pack_model {
  size_t struct_size;
  const char *name;       /* NULL: "default" */
  const char *graph_path; /* graph JSON; or, with graph_path NULL, the next two */
  const char *graph;      /* its text; need not be terminated */
  size_t graph_bytes;
  const char *params_path;     /* a params file; NULL: params */
  const heddle_params *params; /* NULL: the model has none inside */
} heddle_pack_model;

/* A module that the packed library imports besides those that it has: for a loader of the application
 * (heddle_module_register_loader), or device code. struct_size is sizeof. */
typedef struct heddle_pack_import {
  size_t struct_size;
  const char *kind;
  const void *data; /* as its loader reads it */
  size_t bytes;
} heddle_pack_import;

/* heddle_pack_options.flags */
enum {
  HEDDLE_PACK_NO_PARAMS = 1, /* models are written without parameters */
  HEDDLE_PACK_NO_MODELS = 2  /* models that the libraries hold are left out */
};

typedef struct heddle_pack_options {
  size_t struct_size;
  const char *const *libraries; /* finished libraries (.so), which may hold models, or objects (.o, .a, .tar) */
  size_t n_libraries;
  const heddle_pack_model *const *models;
  size_t n_models;
  const heddle_pack_import *const *imports;
  size_t n_imports;
  uint32_t flags;
  const char *compiler; /* that links objects; NULL: the variable CC, else "cc" */
  /* Of a graph of operators: lists of devices, as heddle_model_options.devices has them, for which the file also holds what
   * was prepared: packed weights, programs of devices, measured costs. The model is loaded and run once with each. */
  const char *const *targets;
  size_t n_targets;
  const struct heddle_sign_options *sign; /* how the file is signed and encrypted (sign.h); NULL: it is not */
  /* With targets: numbers for the dimensions of inputs that have names, "NAME=NUMBER" each. The graph keeps the names. Where a
   * name has several numbers the model is run once with the first number of each name, once with the second, and so on; a
   * name with fewer keeps its last. */
  const char *const *dims;
  size_t n_dims;
  /* With targets: limits on devices' memory, as heddle_model_options.memory has them. What is prepared is for models that have
   * the same limits; NULL: for models without. */
  const char *memory;
} heddle_pack_options;

/* Without libraries: writes the one model, a graph of operators without a name (graph_path may be an .onnx file or a file that this call wrote of
 * a graph, whose own parameters are taken if none are given), to a file that heddle_model_load, heddle_graph_load and heddle_params_load read;
 * parameters are mapped then, not copied. With libraries: writes a shared library with the code of the libraries, all modules that they import, and the models. A finished library
 * is not linked again: its code is written with one more segment. Only one of the libraries may have functions, or all are
 * objects, which the C compiler links. The libraries are read, not run. A module inside a library for which a loader with
 * save is registered is saved anew. The file appears under its name when it is complete; a file of that name is replaced.
 * HEDDLE_EIO; HEDDLE_EFORMAT: a malformed file; HEDDLE_EINVAL: two models have one name, or two libraries have functions;
 * HEDDLE_EUNSUPPORTED: there is no libelf or no compiler, or a module is of a kind without a loader; HEDDLE_EFAILED: the
 * compiler failed. With targets also what a model gives that is loaded and run; HEDDLE_EINVAL: an input has no fixed shape, and dims give it none. Any
 * thread; blocks. */
HEDDLE_API heddle_status heddle_pack(const char *path, const heddle_pack_options *options, heddle_error *err);

/* Writes FOLDER/NAME.o, an object file with a packed graph of operators, and FOLDER/NAME.h, which declares its bytes as
 * NAME, for programs that have no files: heddle_model_load_memory(ctx, NAME, sizeof NAME, ...) uses them where they lie. The
 * object is of the machine that Heddle was built for. options are those of heddle_pack without libraries; the one model's
 * graph_path may also be a file that heddle_pack wrote, whose bytes are taken. The folder is created if it is missing. Errors
 * as heddle_pack; HEDDLE_EINVAL: name is no name for a symbol of C and C++; HEDDLE_ELIMIT: the model has over 2 GiB. Any
 * thread; blocks. */
HEDDLE_API heddle_status heddle_link(const char *folder, const char *name, const heddle_pack_options *options,
                                     heddle_error *err);

/* Writes what a packed file holds to a folder, which is created if it is missing: NAME.json and NAME.params of each model,
 * and lib.so, the library without models; of a graph of operators default.json and default.params. Files of these names are replaced. Errors as heddle_pack; HEDDLE_ENOTFOUND: the
 * file holds no model. Any thread; blocks. */
HEDDLE_API heddle_status heddle_unpack(const char *path, const char *folder, heddle_error *err);

/* What a packed graph carries that was prepared for devices (heddle_pack_options.targets), as JSON text; params are those of
 * the file. "heddle": the version that wrote it; "why": why nothing of it is used here, or null; "targets": objects with
 * "for", the list of devices; "fits", "why"; "bytes"; "devices", each with "name", "about", "driver", "build" and "why" (it
 * is not as it was), and "files", each with "name", "kind" and "bytes". "null": nothing was prepared. With ctx, whose plugins
 * for these devices are loaded, it is compared with the devices that are here; with NULL only with the version. *out is freed
 * with heddle_free. Any thread. */
HEDDLE_API heddle_status heddle_params_prepared(const heddle_params *params, heddle_context *ctx, char **out,
                                                heddle_error *err);

#ifdef __cplusplus
}
#endif

#endif
