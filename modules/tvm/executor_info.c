/* modules/tvm/executor_info.c: what get_input_info and get_output_info answer: {"shape": {...}, "dtype": {...}} by name. */
#include "core/alloc.h"
#include "core/error.h"
#include "modules/tvm/executor_object.h"

void heddle__info_add(heddle__info *info, const char *name, const heddle_io_info *io) {
  const char *comma = info->shape.used > 0 ? ", " : "";
  heddle__say_text(&info->shape, comma);
  heddle__say_string(&info->shape, name);
  heddle__say_text(&info->shape, ": ");
  if (io->ndim == UINT32_MAX) heddle__say_text(&info->shape, "null");
  else heddle__json_shape(&info->shape, io->shape, io->ndim);
  heddle__say_text(&info->dtype, comma);
  heddle__say_string(&info->dtype, name);
  heddle__say_text(&info->dtype, ": ");
  heddle__json_dtype(&info->dtype, io->dtype);
}

int heddle__info_answer(heddle__info *info, const char *method, heddle_status s, const heddle_error *err,
                        heddle__word *ret, int32_t *ret_code) {
  heddle__sheet all = {.failed = info->shape.failed || info->dtype.failed};
  heddle__say_text(&all, "{\"shape\": {");
  heddle__say_bytes(&all, info->shape.text != NULL ? info->shape.text : "", info->shape.used);
  heddle__say_text(&all, "}, \"dtype\": {");
  heddle__say_bytes(&all, info->dtype.text != NULL ? info->dtype.text : "", info->dtype.used);
  heddle__say_text(&all, "}}");
  heddle__free(info->shape.text);
  heddle__free(info->dtype.text);
  if (s == HEDDLE_OK) return heddle__json_give(&all, ret, ret_code);
  heddle__free(all.text);
  return heddle__refuse_error(method, err);
}

heddle_status heddle__executor_no_shape(const char *what, const char *name, heddle_error *err) {
  return heddle__fail(err, HEDDLE_EINVAL, "%s '%s': its shape is not known before the inputs are set", what, name);
}
