/* graph/quantize.c: checks what heddle_quantize is called with; frontends/onnx does the work. */
#include "heddle/quantize.h"

#include "core/error.h"
#include "core/parts.h"
#include "graph/frontend.h"

heddle_status heddle_quantize(const char *model, const char *output, const heddle_quantize_options *options,
                              heddle_error *err) {
  heddle_quantize_options o = {.struct_size = sizeof o};
  if (model == NULL || output == NULL) return heddle__fail(err, HEDDLE_EINVAL, "quantize: model or output is NULL");
  if (options != NULL && options->struct_size != sizeof o)
    return heddle__fail(err, HEDDLE_EINVAL, "quantize: struct_size is %zu, expected %zu", options->struct_size,
                        sizeof o);
  if (options != NULL) o = *options;
  if (o.bits == 0) o.bits = 4;
  if (o.block == 0) o.block = 32;
  if (o.bits != 4 && o.bits != 8)
    return heddle__fail(err, HEDDLE_EINVAL, "quantize: bits is %u, expected 4 or 8", o.bits);
  if (o.block < 16 || o.block > 256 || (o.block & (o.block - 1)) != 0)
    return heddle__fail(err, HEDDLE_EINVAL, "quantize: block is %u, expected a power of two from 16 to 256", o.block);
  if (o.accuracy_level > 4)
    return heddle__fail(err, HEDDLE_EINVAL, "quantize: accuracy_level is %u, expected 0 to 4", o.accuracy_level);
  if ((o.flags & ~(uint32_t)(HEDDLE_QUANTIZE_SYMMETRIC | HEDDLE_QUANTIZE_QDQ)) != 0)
    return heddle__fail(err, HEDDLE_EINVAL, "quantize: unknown flags %#x", o.flags);
#if HEDDLE_HAS_ONNX
  return heddle__onnx_quantize(model, output, &o, err);
#else
  return heddle__left_out(err, "reader of ONNX models", "HEDDLE_ONNX");
#endif
}
