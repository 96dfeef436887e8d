// How parameters come: the members of a struct of plugins/common/kernels/params.h that a family passes, in its order,
// each an int or a float (arrays of them without gaps). PUSHED where they are 32 words or fewer, else STORED:
//
//   PUSHED { int count; float alpha, beta; int at[3]; } p;
#define PUSHED layout(push_constant, std430) uniform params_pushed
#define STORED layout(set = 0, binding = 0, std430) readonly buffer params_stored

#define K_DIMS 8
#define K_OPERANDS 3
#define K_SPATIAL 3
#define K_INPUTS 8

// Operand n, from 1 on, of elements of a type.
#define OPERAND(n, type, name) layout(set = 0, binding = n, std430) readonly buffer operand_##name { type name[]; }
#define RESULT(n, type, name) layout(set = 0, binding = n, std430) buffer operand_##name { type name[]; }
