/* heddle/heddle.h: the complete public API. Plugins include heddle/plugin.h instead. */
#ifndef HEDDLE_HEDDLE_H
#define HEDDLE_HEDDLE_H

#include "heddle/batch.h"
#include "heddle/device.h"
#include "heddle/executor.h"
#include "heddle/generate.h"
#include "heddle/generate_batch.h"
#include "heddle/graph.h"
#include "heddle/model.h"
#include "heddle/module.h"
#include "heddle/pack.h"
#include "heddle/quantize.h"
#include "heddle/ranks.h"
#include "heddle/sign.h"
#include "heddle/state.h"
#include "heddle/status.h"
#include "heddle/strings.h"
#include "heddle/tensor.h"
#include "heddle/text.h"

#endif
