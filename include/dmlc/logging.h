// dmlc/logging.h: CHECK and LOG for programs that include them under this name; tvm/runtime/logging.h has them.
#ifndef DMLC_LOGGING_H_
#define DMLC_LOGGING_H_

#include <tvm/runtime/logging.h>

#endif
