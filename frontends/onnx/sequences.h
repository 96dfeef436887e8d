/* frontends/onnx/sequences.h: sequences and optionals whose length is known when the model is read. They are no values of a
 * graph: an operator that takes one is written as what it does to the tensors in it. Private to frontends/onnx. */
#ifndef HEDDLE_ONNX_SEQUENCES_H
#define HEDDLE_ONNX_SEQUENCES_H

#include "frontends/onnx/upgrade.h"

/* SequenceConstruct, SequenceAt, SplitToSequence, Optional and the like, and Identity of a sequence; others stay as they
 * are. A sequence that another operator takes is noted as a problem. */
HEDDLE__UPGRADE(heddle__upgrade_sequence);

/* The tensors of a sequence, as JSON strings; NULL where it is none, or not a list. */
const json_t *heddle__onnx_sequence(const heddle__onnx_reader *r, const char *name);

#endif
