// dmlc/thread_local.h: one object a thread, as TVM's JNI and Python bindings use it.
#ifndef DMLC_THREAD_LOCAL_H_
#define DMLC_THREAD_LOCAL_H_

namespace dmlc {

template <class T> class ThreadLocalStore {
public:
  static T *Get() {
    static thread_local T one;
    return &one;
  }
};

} // namespace dmlc

#endif
