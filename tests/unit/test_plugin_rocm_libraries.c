/* timeout: 120
 * Products by the double of rocBLAS: cases_libraries.h. */
#define CASE_PLUGIN_ROCM
#define LIBRARY "rocBLAS"
#define LIBRARY_SETTINGS "rocblas", HEDDLE_TEST_BUILD "/tests/fakes/rocm/librocblas.so.4"
#define FAILING_CALL "rocblas_gemm_strided_batched_ex"
#define CREATING_CALL "rocblas_create_handle"
#define FAST_OTHERWISE exact
#include "cases_libraries.h"

CASES(LIBRARY_CASES)
