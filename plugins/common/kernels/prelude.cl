/* The words in which kernels are written, so that one text is OpenCL C, CUDA C and HIP. It is put in front of params.h
 * and of each kernel file; the builder adds -D options: IDX is the integer that counts elements ("int" or "long"). For
 * NVRTC and hiprtc these are lines in front instead, because headers of theirs have names of the same spelling.
 *
 * A work-group has K_GROUP items in one dimension. Kernels use float, int, long (64 bits) and the unsigned names. */
#define K_GROUP 64
#define UNROLL _Pragma("unroll")

typedef signed char schar;

#if defined(__OPENCL_VERSION__) || defined(__OPENCL_C_VERSION__)
#define KERNEL __kernel
#define GLOBAL __global
#define LOCAL __local
#define DEVICE
#define LOCAL_ARRAY(type, name, count) __local type name[count]
#define BARRIER barrier(CLK_LOCAL_MEM_FENCE)
#define K_ITEM ((int)get_local_id(0))
#define K_GROUP_ID ((IDX)get_group_id(0))
#define K_GLOBAL_ID ((IDX)get_global_id(0))
#define K_INFINITY INFINITY
#define K_NAN nan(0u)
#define K_FLOAT(bits) as_float(bits)
#define K_BITS(x) as_uint(x)
#ifdef cl_khr_fp64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif
#ifdef K_DECLARES /* the driver's header of built-in functions is left out: plugins/opencl/build.c */
#define K_PURE __attribute__((overloadable, const))
#ifdef cl_khr_fp64
#define K_OF_REALS(name) \
  float K_PURE name(float); \
  double K_PURE name(double);
#define K_OF_TWO_REALS(name) \
  float K_PURE name(float, float); \
  double K_PURE name(double, double);
#else
#define K_OF_REALS(name) float K_PURE name(float);
#define K_OF_TWO_REALS(name) float K_PURE name(float, float);
#endif
size_t K_PURE get_global_id(uint);
size_t K_PURE get_local_id(uint);
size_t K_PURE get_group_id(uint);
void __attribute__((overloadable, convergent)) barrier(uint);
float K_PURE nan(uint);
K_OF_REALS(acos) K_OF_REALS(acosh) K_OF_REALS(asin) K_OF_REALS(asinh) K_OF_REALS(atan) K_OF_REALS(atanh)
K_OF_REALS(ceil) K_OF_REALS(cos) K_OF_REALS(cosh) K_OF_REALS(erf) K_OF_REALS(exp) K_OF_REALS(expm1) K_OF_REALS(fabs)
K_OF_REALS(floor) K_OF_REALS(log) K_OF_REALS(log1p) K_OF_REALS(rint) K_OF_REALS(sin) K_OF_REALS(sinh) K_OF_REALS(sqrt)
K_OF_REALS(tan) K_OF_REALS(tanh) K_OF_TWO_REALS(copysign) K_OF_TWO_REALS(fmod) K_OF_TWO_REALS(pow)
#ifndef CLK_LOCAL_MEM_FENCE
#define CLK_LOCAL_MEM_FENCE 1
#endif
#ifndef INFINITY
#define INFINITY __builtin_inff()
#endif
#ifndef as_float
#define as_float(x) __builtin_astype((x), float)
#define as_uint(x) __builtin_astype((x), uint)
#endif
#endif
#else
/* The bounds give an item the registers that 64 may have: for AMD it is else compiled for 1024, and tiles spill. */
#define KERNEL extern "C" __global__ __launch_bounds__(K_GROUP)
#define GLOBAL
#define LOCAL
#define DEVICE __device__ __forceinline__ /* not static: what a program does not use is no warning then */
#define LOCAL_ARRAY(type, name, count) __shared__ type name[count]
#define BARRIER __syncthreads()
#define K_ITEM ((int)threadIdx.x)
#define K_GROUP_ID ((IDX)blockIdx.x)
#define K_GLOBAL_ID ((IDX)blockIdx.x * (IDX)blockDim.x + (IDX)threadIdx.x)
#define K_INFINITY __int_as_float(0x7f800000)
#define K_NAN __int_as_float(0x7fc00000)
#define K_FLOAT(bits) __uint_as_float(bits)
#define K_BITS(x) __float_as_uint(x)
typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;
#endif

/* A sum that carries what rounding took from it (Kahan's), so that errors do not grow with its length. An infinite or NaN
 * sum is what plain additions would have given. */
typedef struct k_total {
  float sum, rest;
} k_total;

DEVICE void k_total_add(k_total *t, float x) {
  const float more = x - t->rest, sum = t->sum + more, rest = (sum - t->sum) - more;
  t->rest = rest - rest == 0.0f ? rest : 0.0f; /* finite */
  t->sum = sum;
}

DEVICE float k_total_value(const k_total *t) {
  return t->sum - t->rest;
}

/* Sum of what the items of a group hold, in room for K_GROUP; every item gets it. A barrier on both sides. */
DEVICE float k_group_sum(LOCAL float *room, float x) {
  const int item = K_ITEM;
  room[item] = x;
  BARRIER;
  for (int span = K_GROUP / 2; span > 0; span /= 2) {
    if (item < span) room[item] += room[item + span];
    BARRIER;
  }
  x = room[0];
  BARRIER;
  return x;
}
