/* examples/tvm-c-api/main.c: a program of TVM's C runtime API, with nothing of Heddle's own in it: loads a compiled library,
 * the graph as text and the parameters as bytes, runs an image through them, and prints the class with the highest score.
 * C11 and C++17. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <tvm/runtime/c_runtime_api.h>

enum { CLASSES = 1000, PIXELS = 3 * 224 * 224 };

static void must(int status, const char *what) {
  if (status == 0) return;
  fprintf(stderr, "%s: %s\n", what, TVMGetLastError());
  exit(1);
}

/* A file's bytes, with a zero behind them. */
static char *read_file(const char *path, size_t *size) {
  FILE *file = fopen(path, "rb");
  if (file == NULL || fseek(file, 0, SEEK_END) != 0) {
    perror(path);
    exit(1);
  }
  long n = ftell(file);
  char *bytes = n >= 0 ? (char *)calloc((size_t)n + 1, 1) : NULL;
  rewind(file);
  if (bytes == NULL || fread(bytes, 1, (size_t)n, file) != (size_t)n) {
    fprintf(stderr, "%s: it cannot be read\n", path);
    exit(1);
  }
  fclose(file);
  *size = (size_t)n;
  return bytes;
}

static TVMFunctionHandle method(TVMModuleHandle module, const char *name) {
  TVMFunctionHandle f = NULL;
  must(TVMModGetFunction(module, name, 0, &f), name);
  if (f == NULL) {
    fprintf(stderr, "the module has no function '%s'\n", name);
    exit(1);
  }
  return f;
}

static void call(TVMFunctionHandle f, TVMValue *args, int *codes, int n, const char *what) {
  TVMValue result;
  int code;
  must(TVMFuncCall(f, args, codes, n, &result, &code), what);
}

/* tvm.graph_executor.create(json, library, device type, device number) */
static TVMModuleHandle create(const char *json, TVMModuleHandle library) {
  TVMFunctionHandle f = NULL;
  TVMValue args[4], result;
  int codes[4] = {kTVMStr, kTVMModuleHandle, kTVMArgInt, kTVMArgInt}, code;
  must(TVMFuncGetGlobal("tvm.graph_executor.create", &f), "tvm.graph_executor.create");
  if (f == NULL) {
    fprintf(stderr, "there is no graph executor here\n");
    exit(1);
  }
  args[0].v_str = json;
  args[1].v_handle = library;
  args[2].v_int64 = kDLCPU;
  args[3].v_int64 = 0;
  must(TVMFuncCall(f, args, codes, 4, &result, &code), "tvm.graph_executor.create");
  must(TVMFuncFree(f), "free");
  return result.v_handle;
}

static TVMArrayHandle array(const tvm_index_t *shape, int ndim) {
  TVMArrayHandle a;
  must(TVMArrayAlloc(shape, ndim, kDLFloat, 32, 1, kDLCPU, 0, &a), "an array");
  return a;
}

/* The file's, or a picture of our own: a slope in each colour. */
static float *picture(const char *path) {
  size_t size;
  if (path != NULL) {
    float *pixels = (float *)(void *)read_file(path, &size);
    if (size == PIXELS * sizeof(float)) return pixels;
    fprintf(stderr, "%s: %zu bytes, and 1 x 3 x 224 x 224 numbers of 4 bytes are expected\n", path, size);
    exit(1);
  }
  float *pixels = (float *)calloc(PIXELS, sizeof(float));
  for (int i = 0; i < PIXELS && pixels != NULL; i++) pixels[i] = (float)(i % 224) / 224;
  return pixels;
}

int main(int argc, char **argv) {
  if (argc < 4 || argc > 5) {
    fprintf(stderr, "usage: tvm-c-api LIBRARY GRAPH PARAMS [IMAGE]\n");
    return 2;
  }
  TVMModuleHandle library;
  must(TVMModLoadFromFile(argv[1], "", &library), argv[1]);
  size_t json_size, params_size;
  char *json = read_file(argv[2], &json_size), *params = read_file(argv[3], &params_size);
  TVMModuleHandle executor = create(json, library);

  TVMByteArray bytes = {params, params_size};
  TVMValue args[2];
  int codes[2] = {kTVMBytes, kTVMDLTensorHandle};
  TVMFunctionHandle load_params = method(executor, "load_params");
  args[0].v_handle = &bytes;
  call(load_params, args, codes, 1, "load_params");

  const tvm_index_t in_shape[4] = {1, 3, 224, 224}, out_shape[2] = {1, CLASSES};
  TVMArrayHandle in = array(in_shape, 4), out = array(out_shape, 2);
  float *pixels = picture(argc == 5 ? argv[4] : NULL);
  must(TVMArrayCopyFromBytes(in, pixels, PIXELS * sizeof(float)), "the image");

  TVMFunctionHandle set_input = method(executor, "set_input"), run = method(executor, "run");
  TVMFunctionHandle get_output = method(executor, "get_output");
  args[0].v_str = "data";
  args[1].v_handle = in;
  codes[0] = kTVMStr;
  call(set_input, args, codes, 2, "set_input");
  call(run, NULL, NULL, 0, "run");
  args[0].v_int64 = 0;
  args[1].v_handle = out;
  codes[0] = kTVMArgInt;
  call(get_output, args, codes, 2, "get_output");

  float scores[CLASSES];
  int best = 0;
  must(TVMArrayCopyToBytes(out, scores, sizeof scores), "the scores");
  for (int i = 1; i < CLASSES; i++)
    if (scores[i] > scores[best]) best = i;
  printf("class %d, score %.6f\n", best, scores[best]);

  TVMFunctionHandle functions[] = {load_params, set_input, run, get_output};
  for (int i = 0; i < 4; i++) must(TVMFuncFree(functions[i]), "free");
  must(TVMArrayFree(in), "free");
  must(TVMArrayFree(out), "free");
  must(TVMModFree(executor), "free");
  must(TVMModFree(library), "free");
  free(pixels);
  free(params);
  free(json);
  return 0;
}
