// The numbers of ops.h as constants: OP_ADD and so on.
#include "ops.h"

#define OP_NUMBER(number, word) const int OP_##word = number;
VLK_OPS_1(OP_NUMBER)
VLK_OPS_2(OP_NUMBER)
VLK_OPS_3(OP_NUMBER)
