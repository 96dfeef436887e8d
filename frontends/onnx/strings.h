/* frontends/onnx/strings.h: strings as numbers. A graph has no strings: each text of a model has a number, by which kernels
 * compare, choose and move it, on any device; the texts are listed beside the graph ("strings" of its "heddle" object),
 * with the names of the inputs and outputs whose numbers they are ("texts"). An input may have texts that are not listed,
 * as numbers behind the last. Maps that are outputs are matrices, and their keys are listed there too ("maps"). */
#ifndef HEDDLE_ONNX_STRINGS_H
#define HEDDLE_ONNX_STRINGS_H

#include "frontends/onnx/reader.h"

/* The numbers of a tensor of strings, of n elements, from the arena. HEDDLE_EFORMAT where one is no text. */
heddle_status heddle__onnx_codes(heddle__onnx_reader *r, const Onnx__TensorProto *t, uint64_t n, int64_t **out);

/* An input or output of the model is of strings. */
heddle_status heddle__onnx_note_text(heddle__onnx_reader *r, const char *name);

/* An input or output of the model is of a kind of heddle_string_kind. */
heddle_status heddle__onnx_note_kind(heddle__onnx_reader *r, const char *name, int kind);

/* An output is a list of maps from labels to the columns of a matrix. */
heddle_status heddle__onnx_note_map(heddle__onnx_reader *r, const char *name, const int64_t *labels, size_t n,
                                    bool is_text);
bool heddle__onnx_is_map(const heddle__onnx_reader *r, const char *name);

/* Whether a node may take what it takes: a problem is noted where that is a string, or a map, and it does something with it
 * that numbers cannot stand for. */
bool heddle__onnx_check_strings(heddle__onnx_reader *r, const Onnx__NodeProto *node);

/* Adds what there is of all this to a graph's "heddle" object. */
heddle_status heddle__onnx_tell_strings(heddle__onnx_reader *r, json_t *heddle);

#endif
