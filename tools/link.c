/* tools/link.c: heddle link: a packed model as an object file with a C header. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "heddle/heddle.h"
#include "model_file.h"
#include "objects.h"
#include "options.h"
#include "text.h"

static const option known[] = {
    {"output", OPTION_TEXT, "FOLDER", offsetof(options, output), "the folder that is written to (or -o)"},
    {"name", OPTION_TEXT, "NAME", offsetof(options, model_name),
     "the name of the files and of the symbol; MODEL's own by default"},
    {"params", OPTION_TEXT, "FILE", offsetof(options, params), "parameters; MODEL's .params beside it by default"},
    {"for", OPTION_WORDS, "LIST", offsetof(options, targets),
     "the model also gets what can be prepared for devices: packed weights, programs"},
    {"dim", OPTION_PAIRS, "NAME=NUMBER", offsetof(options, dims),
     "with --for: a number for a dimension that the model names; several of one name prepare for each"},
    OPTION_TRUST,
    OPTION_KEY,
    OPTION_HELP,
    OPTION_END};

/* The file's name without folder and ending, as a name of C. */
static void name_of(const char *path, char *out, size_t size) {
  const char *slash = strrchr(path, '/'), *base = slash != NULL ? slash + 1 : path, *dot = strrchr(base, '.');
  const size_t n = dot != NULL && dot != base ? (size_t)(dot - base) : strlen(base);
  const bool is_number = base[0] >= '0' && base[0] <= '9';
  snprintf(out, size, "%s%.*s", is_number ? "_" : "", (int)(n < size - 2 ? n : size - 2), base);
  for (char *c = out; *c != '\0'; c++)
    if (!((*c >= '0' && *c <= '9') || (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z'))) *c = '_';
}

static int link_model(const options *o) {
  heddle_error err = {0};
  char name[100], beside[PATH_ROOM] = "";
  const size_t n = strlen(o->model);
  if (o->output == NULL) {
    print_error("heddle link: where to? -o needs the name of a folder\n");
    return WRONG_WORDS;
  }
  if (n > 5 && strcmp(o->model + n - 5, ".json") == 0)
    snprintf(beside, sizeof beside, "%.*s.params", (int)(n - 5), o->model);
  const bool is_beside = o->params == NULL && beside[0] != '\0' && access(beside, F_OK) == 0;
  const heddle_pack_model model = {
      .struct_size = sizeof model, .graph_path = o->model, .params_path = is_beside ? beside : o->params};
  const heddle_pack_model *const models[] = {&model};
  const heddle_pack_options packing = {.struct_size = sizeof packing,
                                       .models = models,
                                       .n_models = 1,
                                       .targets = o->targets.data,
                                       .n_targets = o->targets.count,
                                       .dims = o->dims.data,
                                       .n_dims = o->dims.count};
  name_of(objects_source(o->model), name, sizeof name);
  const char *used = o->model_name != NULL ? o->model_name : name;
  if (heddle_link(o->output, used, &packing, &err) != HEDDLE_OK) return fail("link", &err);
  snprintf(beside, sizeof beside, "%s/%s.o", o->output, used);
  print("wrote %s and %s/%s.h\n", beside, o->output, used);
  warn_of_functions("link", o->model, beside);
  return DONE;
}

const command link_command = {
    "link",
    "a model as an object file with a C header, for programs without files",
    "Writes NAME.o, which holds the graph (.onnx, .json, or what heddle pack wrote of one) and its parameters, and "
    "NAME.h,\n"
    "which declares them for heddle_model_load_memory: a program that is linked with them needs no file of the model.",
    known,
    SUBJECT_MODEL,
    link_model};
