/* modules/tvm/executor_info.c: what get_input_info and get_output_info answer: {"shape": {...}, "dtype": {...}} by name. */
#include "core/alloc.h"
#include "core/error.h"
#include "modules/tvm/executor_object.h"

void heddle__info_add(heddle__info *info, const char *name, const heddle_io_info *io) {
  const char *comma = info->shape.used > 0 ? ", " : "";
  heddle__json_add(&info->shape, "%s", comma);
  heddle__json_string(&info->shape, name);
  heddle__json_add(&info->shape, ": ");
  if (io->ndim == UINT32_MAX) heddle__json_add(&info->shape, "null");
  else heddle__json_shape(&info->shape, io->shape, io->ndim);
  heddle__json_add(&info->dtype, "%s", comma);
  heddle__json_string(&info->dtype, name);
  heddle__json_add(&info->dtype, ": ");
  heddle__json_dtype(&info->dtype, io->dtype);
}

int heddle__info_answer(heddle__info *info, const char *method, heddle_status s, const heddle_error *err,
                        heddle__word *ret, int32_t *ret_code) {
  heddle__json all = {.lost = info->shape.lost || info->dtype.lost};
  heddle__json_add(&all, "{\"shape\": {%s}, \"dtype\": {%s}}", info->shape.used > 0 ? info->shape.data : "",
                   info->dtype.used > 0 ? info->dtype.data : "");
  heddle__free(info->shape.data);
  heddle__free(info->dtype.data);
  if (s == HEDDLE_OK) return heddle__json_give(&all, ret, ret_code);
  heddle__free(all.data);
  return heddle__refuse_error(method, err);
}

heddle_status heddle__executor_no_shape(const char *what, const char *name, heddle_error *err) {
  return heddle__fail(err, HEDDLE_EINVAL, "%s '%s': its shape is not known before the inputs are set", what, name);
}
