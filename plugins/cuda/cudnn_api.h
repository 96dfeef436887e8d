/* What the cuda plugin uses of cuDNN: the calls of its older interface, which versions 7 to 9 have alike, and their numbers.
 * Declared here so that nothing of NVIDIA's is needed to build; tests/unit/test_gpu_library_headers.c compares it with cudnn.h
 * where that is.
 *
 * Source: NVIDIA's cuDNN reference. */
#ifndef HEDDLE_PLUGINS_CUDA_CUDNN_API_H
#define HEDDLE_PLUGINS_CUDA_CUDNN_API_H

#include <stddef.h>

enum {
  DNN_FLOAT = 0,
  DNN_NCHW = 0,
  DNN_CROSS_CORRELATION = 1,
  DNN_DEFAULT_MATH = 0,
  DNN_TENSOR_MATH = 1,
  DNN_CONVERSION_MATH = 2,
  DNN_FMA_MATH = 3, /* from version 8 on */
  DNN_NO_MATH = -1, /* ours */
  DNN_MOST_DIMS = 5,
  DNN_ALGORITHMS = 8
};

/* How an algorithm does, by the heuristics. */
typedef struct dnn_choice {
  int algo, status;
  float time;
  size_t workspace;
  int determinism, math;
  int reserved[3];
} dnn_choice;

/* X(member, symbol, result, arguments). All but version, cudart and words return a status, 0 being success. */
#define DNN_CALLS(X) \
  X(version, "cudnnGetVersion", size_t, (void)) \
  X(cudart, "cudnnGetCudartVersion", size_t, (void)) \
  X(words, "cudnnGetErrorString", const char *, (int status)) \
  X(create, "cudnnCreate", int, (void **out)) \
  X(destroy, "cudnnDestroy", int, (void *handle)) \
  X(set_stream, "cudnnSetStream", int, (void *handle, void *stream)) \
  X(tensor_create, "cudnnCreateTensorDescriptor", int, (void **out)) \
  X(tensor_destroy, "cudnnDestroyTensorDescriptor", int, (void *tensor)) \
  X(tensor_set, "cudnnSetTensorNdDescriptor", int, \
    (void *tensor, int type, int dims, const int *dim, const int *stride)) \
  X(filter_create, "cudnnCreateFilterDescriptor", int, (void **out)) \
  X(filter_destroy, "cudnnDestroyFilterDescriptor", int, (void *filter)) \
  X(filter_set, "cudnnSetFilterNdDescriptor", int, (void *filter, int type, int format, int dims, const int *dim)) \
  X(conv_create, "cudnnCreateConvolutionDescriptor", int, (void **out)) \
  X(conv_destroy, "cudnnDestroyConvolutionDescriptor", int, (void *conv)) \
  X(conv_set, "cudnnSetConvolutionNdDescriptor", int, \
    (void *conv, int dims, const int *pad, const int *stride, const int *dilation, int mode, int type)) \
  X(conv_math, "cudnnSetConvolutionMathType", int, (void *conv, int math)) \
  X(conv_groups, "cudnnSetConvolutionGroupCount", int, (void *conv, int groups)) \
  X(choose, "cudnnGetConvolutionForwardAlgorithm_v7", int, \
    (void *handle, void *x, void *w, void *conv, void *y, int wanted, int *found, dnn_choice *choices)) \
  X(workspace, "cudnnGetConvolutionForwardWorkspaceSize", int, \
    (void *handle, void *x, void *w, void *conv, void *y, int algo, size_t *out)) \
  X(forward, "cudnnConvolutionForward", int, \
    (void *handle, const void *alpha, void *x_desc, const void *x, void *w_desc, const void *w, void *conv, int algo, \
     void *workspace, size_t bytes, const void *beta, void *y_desc, void *y)) \
  X(add, "cudnnAddTensor", int, \
    (void *handle, const void *alpha, void *a_desc, const void *a, const void *beta, void *c_desc, void *c))

typedef struct dnn_calls {
#define DNN_MEMBER(member, symbol, result, args) result(*member) args;
  DNN_CALLS(DNN_MEMBER)
#undef DNN_MEMBER
} dnn_calls;

#endif
