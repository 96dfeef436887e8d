/* frontends/onnx/objects.h: sequences and optionals that only a run has. They are numbers in a graph (heddle/strings.h).
 * Private to frontends/onnx. */
#ifndef HEDDLE_ONNX_OBJECTS_H
#define HEDDLE_ONNX_OBJECTS_H

#include "frontends/onnx/ml.h"

/* Whether a declared type is a sequence of tensors, or an optional. */
bool heddle__onnx_is_object(const Onnx__TypeProto *type);

/* Whether a value is one. */
bool heddle__onnx_is_known_object(const heddle__onnx_reader *r, const char *name);

/* An input of a graph is the number of a sequence or optional, where it is declared so. */
heddle_status heddle__onnx_learn_object(heddle__onnx_reader *r, const Onnx__ValueInfoProto *v);

/* The same of an input or output of the model, for those who run it. */
heddle_status heddle__onnx_note_port(heddle__onnx_reader *r, const Onnx__ValueInfoProto *v);

/* An output of a graph becomes a number, where it is a sequence or optional; node: whose name new nodes get. */
heddle_status heddle__onnx_give_object(heddle__onnx_reader *r, Onnx__NodeProto *node, const Onnx__ValueInfoProto *v);

/* Those among a node's inputs become numbers. */
heddle_status heddle__onnx_take_objects(heddle__onnx_reader *r, Onnx__NodeProto *node);

/* What a node's graph gives as v is a node's output. */
heddle_status heddle__onnx_learn_given(heddle__onnx_reader *r, const char *output, const Onnx__ValueInfoProto *v);

/* Whether an operator of sequences or optionals is to be carried out in a run; and that. */
bool heddle__onnx_needs_run(const heddle__ml *m);
void heddle__onnx_run_sequence(heddle__ml *m);

/* sequence_map.c: SequenceMap, as a Loop. */
HEDDLE__UPGRADE(heddle__upgrade_sequence_map);

/* texts.c: StringConcat, StringSplit, StringNormalizer, RegexFullMatch, Cast and CastLike from and to strings. */
HEDDLE__UPGRADE(heddle__upgrade_text);

#endif
