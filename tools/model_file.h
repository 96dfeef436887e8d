/* tools/model_file.h: a model's graph and parameters from files, apart, for commands that look at them or change them. */
#ifndef HEDDLE_TOOLS_MODEL_FILE_H
#define HEDDLE_TOOLS_MODEL_FILE_H

#include "heddle/heddle.h"
#include "options.h"

enum { PATH_ROOM = 4200 }; /* longer than any path that can be opened */

bool is_onnx_path(const char *path);

/* A file with graph and parameters of operators, as heddle pack writes it. */
bool is_package(const char *path);

/* The parameters of a model that is no library: those of --params, else those inside of an .onnx file, else
 * MODEL.params beside MODEL.json; *out is NULL where there is no such file. path: where they are, or would be. */
heddle_status load_params_of(const options *o, heddle_params **out, char path[PATH_ROOM], heddle_error *err);

/* The graph of such a model, with the dimensions of --dim in the place of their names. HEDDLE_ENOTFOUND, listing the
 * names that there are. */
heddle_status load_graph_of(const options *o, heddle_graph **out, heddle_error *err);

/* A warning where a graph that is written without a library calls compiled functions; file: what was written. */
void warn_of_functions(const char *command, const char *graph_path, const char *file);

#endif
