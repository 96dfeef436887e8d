/* modules/tvm/model.h: the parameters of a model inside of a library. */
#ifndef HEDDLE_MODULES_TVM_MODEL_H
#define HEDDLE_MODULES_TVM_MODEL_H

#include "modules/tvm/blob.h"

/* As the blob that params files hold; *out is freed with heddle__free. HEDDLE_ENOMEM. */
heddle_status heddle__submodule_params(const heddle__submodule *m, void **out, size_t *bytes, heddle_error *err);

#endif
