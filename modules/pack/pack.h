/* modules/pack/pack.h: packing as libheddle asks libheddle_tvm for it. */
#ifndef HEDDLE_MODULES_PACK_PACK_H
#define HEDDLE_MODULES_PACK_PACK_H

#include "modules/module.h"

heddle_status heddle__pack(const heddle__pack_request *request, heddle_error *err);
heddle_status heddle__unpack(const char *path, const char *folder, heddle_error *err);

#endif
