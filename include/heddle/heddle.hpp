// heddle/heddle.hpp: Heddle for C++17 and newer: all of heddle/heddle.h as classes that manage ownership. Header-only.
//
//   Context, Device   devices and settings                 heddle/cpp/context.hpp
//   Tensor, View<T>   arrays                               heddle/cpp/tensor.hpp
//   Graph, Params     the parts of a model                 heddle/cpp/graph.hpp
//   Module            compiled libraries                   heddle/cpp/module.hpp
//   pack, unpack      models as one file                   heddle/cpp/pack.hpp
//   quantize          weights of 4 or 8 bits               heddle/cpp/quantize.hpp
//   sign, verify      signed and encrypted files           heddle/cpp/sign.hpp
//   Model, Executor   a model and its runs                 heddle/cpp/model.hpp, heddle/cpp/executor.hpp
//   Batcher           many requests, gathered into runs    heddle/cpp/batcher.hpp
//   Generator         tokens of language models            heddle/cpp/generator.hpp
//   GenerationBatch   those of several texts in one run    heddle/cpp/generator.hpp
//   Error, Result<T>  errors, also without exceptions      heddle/cpp/error.hpp
//
// Objects are counted references to C objects: a copy adds a reference, and a move never fails. heddle/function.hpp,
// which needs libheddle_tvm, has functions as values and the registry of functions. docs/cpp.md has a first program.
#ifndef HEDDLE_HEDDLE_HPP
#define HEDDLE_HEDDLE_HPP

#include "heddle/cpp/batcher.hpp"
#include "heddle/cpp/context.hpp"
#include "heddle/cpp/error.hpp"
#include "heddle/cpp/executor.hpp"
#include "heddle/cpp/generator.hpp"
#include "heddle/cpp/graph.hpp"
#include "heddle/cpp/model.hpp"
#include "heddle/cpp/module.hpp"
#include "heddle/cpp/pack.hpp"
#include "heddle/cpp/quantize.hpp"
#include "heddle/cpp/sign.hpp"
#include "heddle/cpp/tensor.hpp"

#endif
