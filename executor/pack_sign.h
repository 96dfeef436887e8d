/* executor/pack_sign.h: packed files that are signed or encrypted. */
#ifndef HEDDLE_EXECUTOR_PACK_SIGN_H
#define HEDDLE_EXECUTOR_PACK_SIGN_H

#include "heddle/pack.h"
#include "heddle/sign.h"

/* heddle_pack with options->sign. */
heddle_status heddle__pack_signed(const char *path, const heddle_pack_options *options, heddle_error *err);

#endif
