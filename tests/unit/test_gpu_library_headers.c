/* What plugins/cuda declares of cuBLASLt and cuDNN, against NVIDIA's own headers where a toolkit is installed: numbers, the
 * structs that are handed over, and that each call takes our arguments. All of it is checked by the compiler; a narrowing
 * argument is an error. */
#include "cases.h"

#include "plugins/cuda/cublaslt_api.h"
#include "plugins/cuda/cudnn_api.h"

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#pragma GCC diagnostic error "-Wconversion"
#pragma GCC diagnostic ignored "-Wsign-conversion"

#if __has_include(<cublasLt.h>)
#define HAS_CUBLASLT 1
#include <cublasLt.h>

#define SAME(ours, theirs) _Static_assert((long long)(ours) == (long long)(theirs), #ours " is " #theirs)
SAME(LT_R_32F, CUDA_R_32F);
SAME(LT_R_16BF, CUDA_R_16BF);
SAME(LT_COMPUTE_32F, CUBLAS_COMPUTE_32F);
SAME(LT_COMPUTE_32F_FAST_TF32, CUBLAS_COMPUTE_32F_FAST_TF32);
SAME(LT_OP_N, CUBLAS_OP_N);
SAME(LT_OP_T, CUBLAS_OP_T);
SAME(LT_LAYOUT_BATCH_COUNT, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT);
SAME(LT_LAYOUT_BATCH_OFFSET, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET);
SAME(LT_DESC_TRANSA, CUBLASLT_MATMUL_DESC_TRANSA);
SAME(LT_DESC_TRANSB, CUBLASLT_MATMUL_DESC_TRANSB);
SAME(LT_DESC_EPILOGUE, CUBLASLT_MATMUL_DESC_EPILOGUE);
SAME(LT_DESC_BIAS_POINTER, CUBLASLT_MATMUL_DESC_BIAS_POINTER);
SAME(LT_EPILOGUE_BIAS, CUBLASLT_EPILOGUE_BIAS);
SAME(LT_PREF_MAX_WORKSPACE, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES);
SAME(LT_PREF_ALIGN_A, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES);
SAME(LT_PREF_ALIGN_B, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES);
SAME(LT_PREF_ALIGN_C, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES);
SAME(LT_PREF_ALIGN_D, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES);
SAME(sizeof(lt_algo), sizeof(cublasLtMatmulAlgo_t));
SAME(sizeof(lt_result), sizeof(cublasLtMatmulHeuristicResult_t));
SAME(offsetof(lt_result, workspace), offsetof(cublasLtMatmulHeuristicResult_t, workspaceSize));
SAME(offsetof(lt_result, state), offsetof(cublasLtMatmulHeuristicResult_t, state));

/* Never called, so that nothing is linked: our arguments go into their calls. Handles are pointers in both. */
#define RESULT(call) _Static_assert(sizeof(call) == sizeof(int), #call)
static inline void takes_ours(void *p, void **out, int number, int64_t wide, uint64_t size, lt_result *results) {
  (void)p, (void)out, (void)number, (void)wide, (void)size, (void)results;
  RESULT(cublasLtCreate((cublasLtHandle_t *)out));
  RESULT(cublasLtDestroy(p));
  RESULT(cublasLtMatrixLayoutCreate((cublasLtMatrixLayout_t *)out, number, size, size, wide));
  RESULT(cublasLtMatrixLayoutDestroy(p));
  RESULT(cublasLtMatrixLayoutSetAttribute(p, number, p, size));
  RESULT(cublasLtMatmulDescCreate((cublasLtMatmulDesc_t *)out, number, number));
  RESULT(cublasLtMatmulDescDestroy(p));
  RESULT(cublasLtMatmulDescSetAttribute(p, number, p, size));
  RESULT(cublasLtMatmulPreferenceCreate((cublasLtMatmulPreference_t *)out));
  RESULT(cublasLtMatmulPreferenceDestroy(p));
  RESULT(cublasLtMatmulPreferenceSetAttribute(p, number, p, size));
  RESULT(
      cublasLtMatmulAlgoGetHeuristic(p, p, p, p, p, p, p, number, (cublasLtMatmulHeuristicResult_t *)results, &number));
  RESULT(cublasLtMatmul(p, p, p, p, p, p, p, p, p, p, p, p, p, p, size, p));
  _Static_assert(sizeof(cublasLtGetVersion()) == sizeof(size_t), "a size");
  _Static_assert(sizeof(cublasLtGetStatusString(number)) == sizeof(char *), "a text");
}
#endif

#if __has_include(<cudnn.h>)
#define HAS_CUDNN 1
#include <cudnn.h>

#ifndef SAME
#define SAME(ours, theirs) _Static_assert((long long)(ours) == (long long)(theirs), #ours " is " #theirs)
#define RESULT(call) _Static_assert(sizeof(call) == sizeof(int), #call)
#endif
SAME(DNN_FLOAT, CUDNN_DATA_FLOAT);
SAME(DNN_NCHW, CUDNN_TENSOR_NCHW);
SAME(DNN_CROSS_CORRELATION, CUDNN_CROSS_CORRELATION);
SAME(DNN_DEFAULT_MATH, CUDNN_DEFAULT_MATH);
SAME(DNN_TENSOR_MATH, CUDNN_TENSOR_OP_MATH);
SAME(DNN_CONVERSION_MATH, CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION);
SAME(DNN_FMA_MATH, CUDNN_FMA_MATH);
SAME(DNN_ALGORITHMS, CUDNN_CONVOLUTION_FWD_ALGO_COUNT);
SAME(sizeof(dnn_choice), sizeof(cudnnConvolutionFwdAlgoPerf_t));
SAME(offsetof(dnn_choice, workspace), offsetof(cudnnConvolutionFwdAlgoPerf_t, memory));
SAME(offsetof(dnn_choice, math), offsetof(cudnnConvolutionFwdAlgoPerf_t, mathType));

static inline void takes_ours_too(void *p, void **out, int number, const int *list, size_t bytes, dnn_choice *choices) {
  (void)p, (void)out, (void)number, (void)list, (void)bytes, (void)choices;
  RESULT(cudnnCreate((cudnnHandle_t *)out));
  RESULT(cudnnDestroy(p));
  RESULT(cudnnSetStream(p, p));
  RESULT(cudnnCreateTensorDescriptor((cudnnTensorDescriptor_t *)out));
  RESULT(cudnnDestroyTensorDescriptor(p));
  RESULT(cudnnSetTensorNdDescriptor(p, number, number, list, list));
  RESULT(cudnnCreateFilterDescriptor((cudnnFilterDescriptor_t *)out));
  RESULT(cudnnDestroyFilterDescriptor(p));
  RESULT(cudnnSetFilterNdDescriptor(p, number, number, number, list));
  RESULT(cudnnCreateConvolutionDescriptor((cudnnConvolutionDescriptor_t *)out));
  RESULT(cudnnDestroyConvolutionDescriptor(p));
  RESULT(cudnnSetConvolutionNdDescriptor(p, number, list, list, list, number, number));
  RESULT(cudnnSetConvolutionMathType(p, number));
  RESULT(cudnnSetConvolutionGroupCount(p, number));
  RESULT(
      cudnnGetConvolutionForwardAlgorithm_v7(p, p, p, p, p, number, &number, (cudnnConvolutionFwdAlgoPerf_t *)choices));
  RESULT(cudnnGetConvolutionForwardWorkspaceSize(p, p, p, p, p, number, &bytes));
  RESULT(cudnnConvolutionForward(p, p, p, p, p, p, p, number, p, bytes, p, p, p));
  RESULT(cudnnAddTensor(p, p, p, p, p, p, p));
  _Static_assert(sizeof(cudnnGetVersion()) == sizeof(size_t), "a size");
  _Static_assert(sizeof(cudnnGetErrorString(number)) == sizeof(char *), "a text");
}
#endif

#pragma GCC diagnostic pop

static void numbers_and_calls_are_those_of_the_headers(void **state) {
  (void)state;
#if !defined(HAS_CUBLASLT) && !defined(HAS_CUDNN)
  SKIP("there are no headers of cuBLASLt or cuDNN");
#endif
}

CASES(CASE(numbers_and_calls_are_those_of_the_headers))
