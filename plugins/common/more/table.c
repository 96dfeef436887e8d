/* The general kernels of each operator, from its line in operators/. */
#include "more.h"

#define more_setup_none NULL

const more_setup more_table[] = {
#define OPERATOR(domain, op, types, kernel, tail, general, ...) more_setup_##general,
#include "operators/all.def"
};
