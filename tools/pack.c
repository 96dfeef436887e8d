/* tools/pack.c: heddle pack: models, their parameters and the libraries that they run, as one file. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "heddle/sign.h"
#include "model_file.h"
#include "options.h"
#include "text.h"

static const option known[] = {
    {"output", OPTION_TEXT, "FILE", offsetof(options, output), "the file that is written (or -o)"},
    {"lib", OPTION_WORDS, "FILE", offsetof(options, libs),
     "a library whose functions the models call: .so, or objects as TVM exports them (.o, .a, .tar)"},
    {"name", OPTION_WORDS, "NAME", offsetof(options, names), "the name of the next graph; default by default"},
    {"params", OPTION_WORDS, "FILE", offsetof(options, param_files),
     "the parameters of the next graph; those beside it (GRAPH.params) by default"},
    {"for", OPTION_WORDS, "LIST", offsetof(options, targets),
     "a graph of operators also gets what can be prepared for devices: packed weights, programs"},
    {"sign", OPTION_TEXT, "KEY", offsetof(options, sign), "signs the file with this secret key (heddle key)"},
    OPTION_SEQUENCE,
    {"encrypt", OPTION_TEXT, "KEY", offsetof(options, encrypt), "encrypts the file with this key"},
    {"remove-params", OPTION_FLAG, NULL, offsetof(options, no_params), "leaves parameters out"},
    {"dim", OPTION_PAIRS, "NAME=NUMBER", offsetof(options, dims),
     "with --for: a number for a dimension that the model names; several of one name prepare for each"},
    {"memory", OPTION_TEXT, "LIST", offsetof(options, memory),
     "with --for: limits on devices' memory that models of the file will have, such as sim:0=64MiB"},
    OPTION_TRUST,
    OPTION_KEY,
    OPTION_HELP,
    OPTION_END};

/* What the words name, in order: libraries (.so, .o, .a, .tar), and graphs. */
typedef struct parts {
  const char **libraries;
  size_t n_libraries;
  heddle_pack_model *models;
  const heddle_pack_model **list;
  char (*beside)[PATH_ROOM]; /* parameters beside graphs */
  size_t n_models;
} parts;

static bool is_graph(const char *path) {
  size_t n = strlen(path);
  return is_onnx_path(path) || (n > 5 && strcmp(path + n - 5, ".json") == 0) || is_package(path);
}

static void add_graph(parts *p, const options *o, const char *path) {
  size_t i = p->n_models++;
  heddle_pack_model *m = &p->models[i];
  *m = (heddle_pack_model){.struct_size = sizeof *m, .graph_path = path};
  p->list[i] = m;
  if (i < o->names.count) m->name = o->names.data[i];
  if (i < o->param_files.count) m->params_path = o->param_files.data[i];
  /* an ONNX model and a package have their own */
  if (o->no_params || m->params_path != NULL || is_onnx_path(path) || is_package(path)) return;
  snprintf(p->beside[i], PATH_ROOM, "%.*s.params", (int)(strlen(path) - 5), path);
  if (access(p->beside[i], F_OK) == 0) m->params_path = p->beside[i];
}

static bool collect(const options *o, parts *p) {
  size_t room = o->models.count + o->libs.count + 1;
  p->libraries = calloc(room, sizeof *p->libraries);
  p->models = calloc(room, sizeof *p->models);
  p->list = calloc(room, sizeof(heddle_pack_model *));
  p->beside = calloc(room, sizeof *p->beside);
  if (!p->libraries || !p->models || !p->list || !p->beside) return false;
  for (size_t i = 0; i < o->models.count; i++) {
    if (is_graph(o->models.data[i])) add_graph(p, o, o->models.data[i]);
    else p->libraries[p->n_libraries++] = o->models.data[i];
  }
  for (size_t i = 0; i < o->libs.count; i++) p->libraries[p->n_libraries++] = o->libs.data[i];
  return true;
}

static int write_file(const options *o, const parts *p) {
  heddle_error err = {0};
  const heddle_sign_options signing = {
      .struct_size = sizeof signing, .sign = o->sign, .encrypt = o->encrypt, .sequence = o->sequence};
  const heddle_pack_options packing = {.struct_size = sizeof packing,
                                       .libraries = p->libraries,
                                       .n_libraries = p->n_libraries,
                                       .models = p->list,
                                       .n_models = p->n_models,
                                       .targets = o->targets.data,
                                       .n_targets = o->targets.count,
                                       .dims = o->dims.data,
                                       .n_dims = o->dims.count,
                                       .memory = o->memory,
                                       .flags = o->no_params ? HEDDLE_PACK_NO_PARAMS : 0,
                                       .sign =
                                           o->sign != NULL || o->encrypt != NULL || o->sequence != 0 ? &signing : NULL};
  if (o->names.count > p->n_models || o->param_files.count > p->n_models) {
    print_error("heddle pack: there are more names or parameters than graphs\n");
    return WRONG_WORDS;
  }
  if (heddle_pack(o->output, &packing, &err) != HEDDLE_OK) return fail("pack", &err);
  print("wrote %s\n", o->output);
  if (p->n_libraries == 0) warn_of_functions("pack", p->models[0].graph_path, o->output);
  return DONE;
}

static int pack(const options *o) {
  parts p = {.n_models = 0};
  if (o->output == NULL) {
    print_error("heddle pack: where to? -o needs the name of a file\n");
    return WRONG_WORDS;
  }
  int status = FAILED;
  if (collect(o, &p)) status = write_file(o, &p);
  else print_error("heddle pack: out of memory\n");
  free((void *)p.libraries);
  free(p.models);
  free((void *)p.list);
  free(p.beside);
  return status;
}

const command pack_command = {"pack",
                              "models, parameters and libraries as one file",
                              "Writes one library with the graphs (.json), their parameters and the libraries that "
                              "they run, in TVM's form of one\n"
                              "file. A library (.so) may hold models already; its code is written as it is. Objects "
                              "(.o, .a, .tar) are linked by\n"
                              "the C compiler (CC). Without a library one graph of operators (.json or .onnx) becomes "
                              "a file of Heddle's own, which "
                              "is\n"
                              "mapped when it is loaded.",
                              known,
                              SUBJECT_MODELS,
                              pack};
