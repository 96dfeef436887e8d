/* modules/tvm_cxx/runtime.c: libtvm_runtime.so, which has no code of its own: what it needs has the names. */
extern const char heddle_tvm_runtime[];
__attribute__((visibility("hidden"))) const char heddle_tvm_runtime[] = HEDDLE_VERSION;
