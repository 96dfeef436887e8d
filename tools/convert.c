/* tools/convert.c: heddle convert: an ONNX model as a graph's .json file with its parameters beside it. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model_file.h"
#include "text.h"

static const option known[] = {{"output", OPTION_TEXT, "MODEL.json", offsetof(options, output),
                                "the graph's file (or -o); MODEL.params is beside it"},
                               OPTION_DIM,
                               OPTION_TRUST,
                               OPTION_KEY,
                               OPTION_HELP,
                               OPTION_END};

static heddle_status save(const options *o, char path[PATH_ROOM], heddle_error *err) {
  heddle_graph *graph = NULL;
  heddle_params *params = NULL;
  heddle_status s = load_graph_of(o, &graph, err);
  if (s == HEDDLE_OK) s = load_params_of(o, &params, path, err);
  snprintf(path, PATH_ROOM, "%.*s.params", (int)(strlen(o->output) - 5), o->output);
  if (s == HEDDLE_OK) s = heddle_params_save(params, path, err); /* before the graph, which is what makes it a model */
  if (s == HEDDLE_OK) s = heddle_graph_save(graph, o->output, err);
  if (s == HEDDLE_OK)
    print("wrote %s, %" PRIu32 " nodes, and %s, %" PRIu32 " tensors\n", o->output, heddle_graph_node_count(graph), path,
          heddle_params_count(params));
  heddle_params_release(params);
  heddle_graph_release(graph);
  return s;
}

static int convert(const options *o) {
  char path[PATH_ROOM];
  heddle_error err = {0};
  size_t n = o->output != NULL ? strlen(o->output) : 0;
  if (n < 6 || strcmp(o->output + n - 5, ".json") != 0 || n + 8 > PATH_ROOM) {
    print_error("heddle convert: where to? -o needs the name of a .json file\n");
    return WRONG_WORDS;
  }
  if (!is_onnx_path(o->model)) {
    print_error("heddle convert: %s: the name of an ONNX model ends in .onnx\n", o->model);
    return WRONG_WORDS;
  }
  return save(o, path, &err) == HEDDLE_OK ? DONE : fail("convert", &err);
}

const command convert_command = {
    "convert",
    "an ONNX model as graph JSON with its parameters",
    "Writes an ONNX model as a graph's .json file with a file of parameters beside it. The nodes are those that run: "
    "of\n"
    "opsets that graphs may have, each with a name of its own. It gives the same outputs as the .onnx file.",
    known,
    true,
    convert};
