/* timeout: 120
 * What the cuda plugin compiles and loads, on the doubles of CUDA's driver and of NVRTC: programs of operators with their
 * cache and sources, architectures, a compiler that is missing, and modules of every format. */
#include "cuda_host.h"

#include "gpu_double.h"
#include "op_case.h"

#include <elf.h>
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

static int nvrtc_compiles(void) {
  void *library = dlopen(getenv("HEDDLE_CUDA_NVRTC"), RTLD_NOW | RTLD_LOCAL);
  fake_gpu_calls_fn calls = NULL;
  if (gpu_is_real()) SKIP("NVRTC is no double");
  assert_non_null(library);
  void *symbol = dlsym(library, "fake_gpu_calls");
  assert_non_null(symbol);
  memcpy(&calls, &symbol, sizeof calls);
  return calls("nvrtcCompileProgram");
}

static void relu(op_case *c) {
  op_case_init(c, "Relu");
  op_input(c, F32, SHAPE(1, 64));
  op_output(c, F32, SHAPE(1, 64));
}

static heddle_status asked(sim_test *t, op_case *c) {
  return t->p->op->query(t->self, 0, &c->region, op_take_offer, c, &t->err);
}

static heddle_status prepared(sim_test *t, op_case *c) {
  heddle_pop *op = NULL;
  heddle_status s = t->p->op->prepare(t->dev[0], &c->region, 0, &op, &t->err);
  t->p->op->op_free(op);
  return s;
}

/* ---------------------------------------------------------------- the cache */

typedef struct folder {
  char path[64], entry[400];
  int entries;
} folder;

static void folder_make(folder *f) {
  snprintf(f->path, sizeof f->path, "/tmp/heddle-code-XXXXXX");
  assert_non_null(mkdtemp(f->path));
}

/* Counts the files of f that end in suffix; entry is the last one. */
static void folder_look(folder *f, const char *suffix, bool empty) {
  DIR *dir = opendir(f->path);
  f->entries = 0;
  assert_non_null(dir);
  for (struct dirent *e; (e = readdir(dir)) != NULL;) {
    const size_t n = strlen(e->d_name), m = strlen(suffix);
    char path[400];
    snprintf(path, sizeof path, "%s/%s", f->path, e->d_name);
    if (n > m && strcmp(e->d_name + n - m, suffix) == 0 && e->d_name[0] != '.') {
      f->entries++;
      memcpy(f->entry, path, sizeof path);
    }
    if (empty) (void)unlink(path);
  }
  closedir(dir);
  if (empty) rmdir(f->path);
}

/* Prepares a Relu with the cache; how often NVRTC was asked for it. */
static int compiles_for(const char *cache, const char *sources) {
  sim_test t;
  op_case c;
  relu(&c);
  cuda_open(&t, 1, "cache_dir", cache, sources != NULL ? "source_dir" : NULL, sources, NULL);
  OK(&t, asked(&t, &c));
  const int before = nvrtc_compiles();
  OK(&t, prepared(&t, &c));
  OK(&t, prepared(&t, &c)); /* kept while the device is open */
  const int after = nvrtc_compiles();
  op_case_free(&c);
  sim_close(&t);
  double_is_clean();
  return after - before;
}

static void programs_are_kept_on_disk(void **state) {
  folder cache, sources;
  (void)state;
  folder_make(&cache);
  folder_make(&sources);
  assert_int_equal(compiles_for(cache.path, NULL), 1);
  folder_look(&cache, "", false);
  assert_int_equal(cache.entries, 1);
  assert_int_equal(compiles_for(cache.path, sources.path), 0);
  folder_look(&sources, ".cu", false);
  assert_int_equal(sources.entries, 1);

  /* A source is a whole program: its options, the prelude, the kernel. */
  char text[256] = "";
  FILE *f = fopen(sources.entry, "r");
  assert_non_null(f);
  assert_true(fread(text, 1, sizeof text - 1, f) > 100);
  fclose(f);
  assert_non_null(strstr(text, "#define IDX int\n"));
  assert_non_null(strstr(text, "#define OP Relu\n"));

  /* Cut off: as good as absent, and written again. */
  assert_int_equal(truncate(cache.entry, 100), 0);
  assert_int_equal(compiles_for(cache.path, NULL), 1);
  assert_int_equal(compiles_for(cache.path, NULL), 0);

  folder_look(&cache, "", true);
  folder_look(&sources, "", true);
}

/* Puts other bytes into an entry of the same length, with the header that they ask for (plugins/common/filecache.c). */
static void forge(const char *path) {
  uint64_t header[5], hash = UINT64_C(0xcbf29ce484222325);
  FILE *f = fopen(path, "r+");
  assert_non_null(f);
  assert_int_equal(fread(header, sizeof header, 1, f), 1);
  for (uint64_t i = 0; i < header[3]; i++) hash = (hash ^ '?') * UINT64_C(0x100000001b3);
  header[4] = hash;
  rewind(f);
  assert_int_equal(fwrite(header, sizeof header, 1, f), 1);
  for (uint64_t i = 0; i < header[3]; i++) assert_int_equal(fputc('?', f), '?');
  fclose(f);
}

static void what_the_driver_refuses_is_built_again(void **state) {
  folder cache;
  (void)state;
  folder_make(&cache);
  assert_int_equal(compiles_for(cache.path, NULL), 1);
  folder_look(&cache, "", false);
  forge(cache.entry);
  assert_int_equal(compiles_for(cache.path, NULL), 1);
  assert_int_equal(compiles_for(cache.path, NULL), 0);
  folder_look(&cache, "", true);
}

static void another_architecture_is_another_program(void **state) {
  folder cache;
  (void)state;
  folder_make(&cache);
  setenv("FAKE_GPU_ARCH", "sm_80", 1);
  assert_int_equal(compiles_for(cache.path, NULL), 1);
  folder_look(&cache, "", true);
  assert_int_equal(cache.entries, 1);
}

/* ---------------------------------------------------------------- the compiler */

static void without_a_compiler_nothing_is_offered(void **state) {
  static const char *const paths[] = {"off", "/nonexistent/libnvrtc.so"};
  static const char *const words[] = {"is switched off (setting nvrtc)", "/nonexistent/libnvrtc.so"};
  (void)state;
  for (int i = 0; i < 2; i++) {
    sim_test t;
    op_case c;
    relu(&c);
    cuda_open(&t, 1, "nvrtc", paths[i], NULL);
    FAILS(&t, HEDDLE_EUNSUPPORTED, words[i], asked(&t, &c));
    FAILS(&t, HEDDLE_EUNSUPPORTED, "NVRTC", prepared(&t, &c));
    op_case_free(&c);
    sim_close(&t); /* and memory and streams work without it: the device was opened */
  }
}

static void a_device_that_nvrtc_is_too_new_for(void **state) {
  sim_test t;
  op_case c;
  (void)state;
  relu(&c);
  setenv("FAKE_GPU_ARCH", "sm_61", 1);
  cuda_open(&t, 1, NULL);
  if (gpu_is_real()) SKIP("the driver is no double");
  FAILS(&t, HEDDLE_EUNSUPPORTED, "NVRTC 13.0 compiles for sm_75 and newer, and the device is sm_61", asked(&t, &c));
  op_case_free(&c);
  sim_close(&t);
}

static void a_grid_has_an_end(void **state) {
  sim_test t;
  op_case c;
  (void)state;
  relu(&c);
  for (int v = 0; v < 2; v++) c.shapes[v][0] = INT64_C(1) << 40;
  cuda_open(&t, 1, NULL);
  FAILS(&t, HEDDLE_EUNSUPPORTED, "node 'n1': Relu: it needs a grid of 17179869184 blocks, and cuda:0 takes 2147483647",
        asked(&t, &c));
  for (int v = 0; v < 2; v++) c.shapes[v][0] = 64;
  op_case_free(&c);
  sim_close(&t);
}

static char said[512];

static void listen(void *ctx, int32_t level, const char *component, const char *text) {
  if (level == HEDDLE_LOG_INFO && strstr(text, "finishes") != NULL) snprintf(said, sizeof said, "%s", text);
  sim_test_log(ctx, level, component, text);
}

/* PTX for the newest that NVRTC knows, which the driver finishes. */
static void a_device_that_nvrtc_is_too_old_for(void **state) {
  sim_test t;
  op_case c;
  (void)state;
  if (gpu_is_real()) SKIP("the driver is no double");
  relu(&c);
  setenv("FAKE_GPU_ARCH", "sm_90", 1);
  setenv("FAKE_GPU_NVRTC_ARCHS", "75,80,100", 1);
  cuda_environment();
  sim_enter(&t, NULL);
  t.fake.table.log = listen;
  cuda_open_devices(&t, 1);
  OK(&t, asked(&t, &c));
  OK(&t, prepared(&t, &c));
  assert_string_equal(said, "cuda:0: NVRTC 13.0 does not know sm_90: kernels are compiled to PTX for compute_80, and "
                            "the driver finishes them");
  op_case_free(&c);
  sim_close(&t);
  double_is_clean();
}

/* ---------------------------------------------------------------- memory */

/* Each allocation of the host's fails once, until all go well: a status, and nothing is lost. */
static void memory_that_is_out_is_a_status(void **state) {
  sim_test t;
  op_case c;
  heddle_status s = HEDDLE_ENOMEM;
  (void)state;
  relu(&c);
  cuda_open(&t, 1, NULL);
  heddle_pstream *stream = sim_stream(&t, t.dev[0]);
  heddle_pbuffer *x = sim_buf(&t, t.dev[0], HEDDLE_MEMORY_DEVICE, 512);
  heddle_pslice in = {x, 0, 256}, out = {x, 256, 256};
  const heddle_pbind bind = {sizeof bind, 0, &in, &out, 1, 1, {NULL, 0, 0}};
  int failed = 0;
  for (long at = 1; s != HEDDLE_OK && at < 100; at++) {
    heddle_pop *op = NULL;
    heddle_plaunch *launch = NULL;
    heddle_pmodule *module = NULL;
    const long live = atomic_load(&t.fake.live);
    t.fake.fail_at = atomic_load(&t.fake.calls) + at;
    s = asked(&t, &c);
    if (s == HEDDLE_OK) s = t.p->op->prepare(t.dev[0], &c.region, 0, &op, &t.err);
    if (s == HEDDLE_OK) s = t.p->op->bind(op, stream, &bind, &launch, &t.err);
    if (s == HEDDLE_OK) s = t.p->module->load(t.dev[0], "ptx", "//", 2, &module, &t.err);
    const bool here = atomic_load(&t.fake.calls) < t.fake.fail_at; /* it was not reached: the last round */
    t.fake.fail_at = 0;
    t.p->op->launch_free(launch);
    t.p->op->op_free(op);
    if (here) {
      assert_int_equal(s, HEDDLE_EFORMAT); /* "//" is no program */
      s = HEDDLE_OK;
    } else if (s != HEDDLE_ENOMEM) {
      fail_msg("allocation %ld: %d: %s", at, s, t.err.text);
    } else {
      failed++;
      /* Programs stay with their device, from the round in which all was there for one. */
      assert_true(atomic_load(&t.fake.live) <= live + 1);
    }
  }
  assert_int_equal(s, HEDDLE_OK);
  assert_true(failed > 10);
  t.p->memory->free(t.dev[0], x);
  t.p->stream->close(stream);
  op_case_free(&c);
  sim_close(&t);
  double_is_clean();
}

/* ---------------------------------------------------------------- modules */

/* CUDA C and OpenCL C at once: the double's compiler takes what is both. */
static const char source[] = "#ifdef __OPENCL_VERSION__\n"
                             "#define KERNEL __kernel\n"
                             "#define GLOBAL __global\n"
                             "#define AT ((int)get_global_id(0))\n"
                             "#else\n"
                             "#define KERNEL extern \"C\" __global__\n"
                             "#define GLOBAL\n"
                             "#define AT ((int)(blockIdx.x * blockDim.x + threadIdx.x))\n"
                             "#endif\n"
                             "KERNEL void scale(GLOBAL const float *x, GLOBAL float *y, float by, int n) {\n"
                             "  if (AT < n) y[AT] = x[AT] * by;\n"
                             "}\n";

static void sources_are_compiled_and_launched(void **state) {
  static const char wrong[] = "#error made by a test\n";
  enum { N = 256 };
  sim_test t;
  heddle_pmodule *m = NULL;
  heddle_pkernel *k = NULL, *again = NULL;
  heddle_pkernel_info info = {.struct_size = sizeof info};
  float x[N], y[N];
  const float by = 3;
  const int32_t n = 60;
  (void)state;
  cuda_open(&t, 1, NULL);
  heddle_pdevice *dev = t.dev[0];
  const heddle_module_table *p = t.p->module;
  assert_string_equal(p->formats(t.self, 0), "cubin,ptx,fatbin,cuda");
  FAILS(&t, HEDDLE_ECOMPILE, "made by a test", p->load(dev, "cuda", wrong, sizeof wrong - 1, &m, &t.err));
  FAILS(&t, HEDDLE_EUNSUPPORTED, "'opencl-c'", p->load(dev, "opencl-c", source, sizeof source - 1, &m, &t.err));
  FAILS(&t, HEDDLE_EFORMAT, "without bytes", p->load(dev, "cuda", source, 0, &m, &t.err));
  OK(&t, p->load(dev, "cuda", source, sizeof source - 1, &m, &t.err));
  FAILS(&t, HEDDLE_ENOTFOUND, "'missing'", p->kernel_get(m, "missing", &k, &info, &t.err));
  OK(&t, p->kernel_get(m, "scale", &k, &info, &t.err));
  OK(&t, p->kernel_get(m, "scale", &again, NULL, &t.err));
  assert_ptr_equal(k, again);
  assert_true(info.max_threads >= 64);

  heddle_pstream *stream = sim_stream(&t, dev);
  heddle_pbuffer *a = sim_buf(&t, dev, HEDDLE_MEMORY_DEVICE, 2 * sizeof x),
                 *b = sim_buf(&t, dev, HEDDLE_MEMORY_DEVICE, sizeof y),
                 *pinned = sim_buf(&t, dev, HEDDLE_MEMORY_PINNED, sizeof y);
  for (int i = 0; i < N; i++) x[i] = (float)i;
  OK(&t, t.p->copy->write(stream, a, 512, x, sizeof x, &t.err));
  sim_fill(&t, stream, b, sizeof y, 0);
  heddle_pargument args[4] = {{a, 512 + 128 * sizeof(float), 0}, {b, 0, 0}, {NULL, 0, 4}, {NULL, 0, 4}};
  memcpy(&args[2].offset, &by, 4);
  memcpy(&args[3].offset, &n, 4);
  const uint32_t grid[3] = {2, 1, 1}, block[3] = {32, 1, 1}, none[3] = {0, 1, 1}, large[3] = {64, 64, 64};
  FAILS(&t, HEDDLE_EINVAL, "empty", p->launch(stream, k, none, block, 0, args, 4, &t.err));
  FAILS(&t, HEDDLE_EINVAL, "threads", p->launch(stream, k, grid, large, 0, args, 4, &t.err));
  FAILS(&t, HEDDLE_EINVAL, "shared memory", p->launch(stream, k, grid, block, UINT32_MAX, args, 4, &t.err));
  if (!gpu_is_real()) { /* more than 48 KiB has to be asked for, and is not taken back by a smaller wish */
    OK(&t, p->launch(stream, k, grid, block, 96 << 10, args, 4, &t.err));
    OK(&t, p->launch(stream, k, grid, block, 64 << 10, args, 4, &t.err));
    OK(&t, p->launch(stream, k, grid, block, 96 << 10, args, 4, &t.err));
  }
  OK(&t, p->launch(stream, k, grid, block, 0, args, 4, &t.err));
  OK(&t, t.p->copy->read(stream, y, b, 0, sizeof y, &t.err));
  for (int i = 0; i < N; i++) assert_true(y[i] == (i < 60 ? 3.0f * (float)(i + 128) : 0.0f));
  args[2].size = 3;
  FAILS(&t, HEDDLE_EINVAL, "inline", p->launch(stream, k, grid, block, 0, args, 4, &t.err));
  args[2].size = 4;
  args[0].offset = 4096;
  FAILS(&t, HEDDLE_EINVAL, "argument of a kernel", p->launch(stream, k, grid, block, 0, args, 4, &t.err));
  sim_sync(&t, stream);
  p->unload(m);
  t.p->memory->free(dev, a);
  t.p->memory->free(dev, b);
  t.p->memory->free(dev, pinned);
  t.p->stream->close(stream);
  sim_close(&t);
  double_is_clean();
}

/* Launches in a capture keep the arguments that they had. */
static void launches_are_captured(void **state) {
  enum { N = 64 };
  sim_test t;
  heddle_pmodule *m = NULL;
  heddle_pkernel *k = NULL;
  heddle_pgraph *graph = NULL;
  float x[N], y[N];
  float by = 3;
  const int32_t n = N;
  (void)state;
  cuda_open(&t, 1, NULL);
  heddle_pdevice *dev = t.dev[0];
  OK(&t, t.p->module->load(dev, "cuda", source, sizeof source - 1, &m, &t.err));
  OK(&t, t.p->module->kernel_get(m, "scale", &k, NULL, &t.err));
  heddle_pstream *stream = sim_stream(&t, dev);
  heddle_pbuffer *a = sim_buf(&t, dev, HEDDLE_MEMORY_DEVICE, sizeof x),
                 *b = sim_buf(&t, dev, HEDDLE_MEMORY_DEVICE, sizeof y);
  for (int i = 0; i < N; i++) x[i] = (float)i;
  OK(&t, t.p->copy->write(stream, a, 0, x, sizeof x, &t.err));
  heddle_pargument args[4] = {{a, 0, 0}, {b, 0, 0}, {NULL, 0, 4}, {NULL, 0, 4}};
  memcpy(&args[2].offset, &by, 4);
  memcpy(&args[3].offset, &n, 4);
  const uint32_t grid[3] = {2, 1, 1}, block[3] = {32, 1, 1};
  OK(&t, t.p->capture->begin(stream, &t.err));
  OK(&t, t.p->module->launch(stream, k, grid, block, 0, args, 4, &t.err));
  OK(&t, t.p->capture->end(stream, &graph, &t.err));
  memset(args, 0xff, sizeof args);
  for (int round = 0; round < 2; round++) {
    sim_fill(&t, stream, b, sizeof y, 0);
    OK(&t, t.p->capture->replay(graph, stream, &t.err));
    OK(&t, t.p->copy->read(stream, y, b, 0, sizeof y, &t.err));
    for (int i = 0; i < N; i++) assert_true(y[i] == 3.0f * (float)i);
  }
  t.p->capture->free(graph);
  t.p->module->unload(m);
  t.p->memory->free(dev, a);
  t.p->memory->free(dev, b);
  t.p->stream->close(stream);
  sim_close(&t);
  double_is_clean();
}

static const char ptx[] = "//\n.version 7.0\n.target sm_75\n.address_size 64\n"
                          ".visible .entry nothing(.param .u64 nothing_param_0)\n{\n ret;\n}\n";

static void what_is_no_image_is_refused(void **state) {
  static const struct {
    const char *format, *bytes, *words;
    uint64_t n;
    heddle_status status;
  } list[] = {
      {"ptx", "no code at all", "", 14, HEDDLE_EFORMAT},
      {"ptx", "//\0.version", "has a zero inside", 11, HEDDLE_EFORMAT},
      {"cuda", "int x;\0int y;", "has a zero inside", 13, HEDDLE_EFORMAT},
      {"cubin", "\177ELF", "does not begin as an ELF file", 4, HEDDLE_EFORMAT},
      {"cubin", ptx, "does not begin as an ELF file", sizeof ptx, HEDDLE_EFORMAT},
      {"fatbin", ptx, "does not begin as a fatbin", sizeof ptx, HEDDLE_EFORMAT},
      {"fatbin", "\x50\xed\x55\xba\x01\0\x10\0\0\x10\0\0\0\0\0\0", "it says that it has 4112 bytes", 16,
       HEDDLE_EFORMAT},
  };
  sim_test t;
  heddle_pmodule *m = NULL;
  (void)state;
  cuda_open(&t, 1, NULL);
  for (size_t i = 0; i < sizeof list / sizeof list[0]; i++)
    FAILS(&t, list[i].status, list[i].words,
          t.p->module->load(t.dev[0], list[i].format, list[i].bytes, list[i].n, &m, &t.err));
  sim_close(&t);
}

/* The program of the test itself is an ELF file: whole, cut off, and with a section that reaches past its end. */
static void an_elf_file_is_measured(void **state) {
  sim_test t;
  heddle_pmodule *m = NULL;
  (void)state;
  cuda_open(&t, 1, NULL);
  FILE *f = fopen("/proc/self/exe", "r");
  assert_non_null(f);
  char *data = malloc(1 << 22);
  const size_t n = fread(data, 1, 1 << 22, f);
  fclose(f);
  FAILS(&t, HEDDLE_EFORMAT, "cut off", t.p->module->load(t.dev[0], "cubin", data, n / 2, &m, &t.err));
  FAILS(&t, HEDDLE_EFORMAT, "cut off", t.p->module->load(t.dev[0], "cubin", data, 64, &m, &t.err));
  heddle_status s = t.p->module->load(t.dev[0], "cubin", data, n, &m, &t.err); /* whole, and of no GPU */
  if (s == HEDDLE_OK || strstr(t.err.text, "cut off") != NULL) fail_msg("%d: %s", s, t.err.text);
  free(data);
  sim_close(&t);
}

/* Memory of a cubin that is yet to be linked has sections of NVIDIA's own types, without bytes in the file. */
static void sections_without_bytes_are_no_cut(void **state) {
  struct {
    Elf64_Ehdr head;
    Elf64_Shdr sections[2];
  } file;
  sim_test t;
  heddle_pmodule *m = NULL;
  (void)state;
  cuda_open(&t, 1, NULL);
  memset(&file, 0, sizeof file);
  memcpy(file.head.e_ident, ELFMAG, SELFMAG);
  file.head.e_ident[EI_CLASS] = ELFCLASS64;
  file.head.e_ident[EI_DATA] = ELFDATA2LSB;
  file.head.e_machine = 190;
  file.head.e_shoff = sizeof file.head;
  file.head.e_shnum = 2;
  file.head.e_shentsize = sizeof file.sections[0];
  file.sections[1] = (Elf64_Shdr){.sh_type = 0x70000007, .sh_offset = sizeof file, .sh_size = 1 << 22};
  heddle_status s = t.p->module->load(t.dev[0], "cubin", &file, sizeof file, &m, &t.err);
  if (s == HEDDLE_OK) t.p->module->unload(m); /* the double does not look inside */
  else if (strstr(t.err.text, "cut off") != NULL) fail_msg("%d: %s", s, t.err.text);
  file.sections[1].sh_type = SHT_PROGBITS;
  FAILS(&t, HEDDLE_EFORMAT, "cut off", t.p->module->load(t.dev[0], "cubin", &file, sizeof file, &m, &t.err));
  sim_close(&t);
}

static void ptx_for_a_newer_device_says_so(void **state) {
  sim_test t;
  heddle_pmodule *m = NULL;
  char newer[sizeof ptx];
  (void)state;
  cuda_open(&t, 1, NULL);
  memcpy(newer, ptx, sizeof ptx);
  memcpy(strstr(newer, "sm_75"), "sm_99", 5);
  OK(&t, t.p->module->load(t.dev[0], "ptx", ptx, sizeof ptx - 1, &m, &t.err)); /* without its zero */
  t.p->module->unload(m);
  if (!gpu_is_real())
    FAILS(&t, HEDDLE_EUNSUPPORTED, "the PTX is for sm_99, and the device is sm_90",
          t.p->module->load(t.dev[0], "ptx", newer, sizeof newer - 1, &m, &t.err));
  sim_close(&t);
  double_is_clean();
}

CASES(CASE(programs_are_kept_on_disk), CASE(what_the_driver_refuses_is_built_again), CASE(a_grid_has_an_end),
      CASE(another_architecture_is_another_program), CASE(without_a_compiler_nothing_is_offered),
      CASE(a_device_that_nvrtc_is_too_new_for), CASE(a_device_that_nvrtc_is_too_old_for),
      CASE(memory_that_is_out_is_a_status), CASE(sources_are_compiled_and_launched), CASE(launches_are_captured),
      CASE(what_is_no_image_is_refused), CASE(an_elf_file_is_measured), CASE(sections_without_bytes_are_no_cut),
      CASE(ptx_for_a_newer_device_says_so))
