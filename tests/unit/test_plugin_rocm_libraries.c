/* timeout: 120
 * Products by the double of rocBLAS: cases_libraries.h. */
#define CASE_PLUGIN_ROCM
#define LIBRARY "rocBLAS"
#define LIBRARY_SETTINGS "rocblas", HEDDLE_TEST_BUILD "/tests/fakes/rocm/librocblas.so.4"
#define FAILING_CALL "rocblas_gemm_strided_batched_ex"
#define CREATING_CALL "rocblas_create_handle"
#define FAST_OTHERWISE exact
#include "cases_libraries.h"

#include <unistd.h>

/* rocBLAS ends the process on a device that it has no kernels for: it is not asked there. */
static void without_kernels_for_the_device_it_is_left(void **state) {
  static const gemm_case g = {64, 64, 64, 0, 2, false, 0, exact};
  static const struct {
    const char *file;
    int taken;
  } list[] = {{"TensileLibrary_lazy_gfx1030.dat", 0},
              {"Kernels.so-000-gfx90ab.hsaco", 0},
              {"Kernels.so-000-gfx90a-xnack+.hsaco", 1},
              {"gfx90a", 1}};
  char folder[] = "/tmp/heddle-tensile-XXXXXX", path[128];
  (void)state;
  assert_non_null(mkdtemp(folder));
  for (size_t i = 0; i < sizeof list / sizeof list[0]; i++) {
    library_rig b;
    snprintf(path, sizeof path, "%s/%s", folder, list[i].file);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fclose(f);
    library_open(&b, "tensile", folder);
    gemm(&b.r, &g);
    assert_int_equal(b.taken, list[i].taken);
    if (list[i].taken == 0) assert_non_null(strstr(b.last, "it has no kernels for gfx90a in /tmp/"));
    rig_close(&b.r);
    unlink(path);
  }
  rmdir(folder);
}

CASES(LIBRARY_CASES, CASE(without_kernels_for_the_device_it_is_left))
