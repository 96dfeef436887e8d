// tvm/runtime/container/array.h: a list of references, copied when it is changed through one of several references.
// Written for Heddle; the names are TVM's.
#ifndef TVM_RUNTIME_CONTAINER_ARRAY_H_
#define TVM_RUNTIME_CONTAINER_ARRAY_H_

#include <initializer_list>
#include <iterator>
#include <vector>

#include <tvm/runtime/container/base.h>
#include <tvm/runtime/container/optional.h>

namespace tvm {
namespace runtime {

class ArrayNode : public Object {
public:
  static constexpr const char *_type_key = "Array";
  TVM_DECLARE_FINAL_OBJECT_INFO(ArrayNode, Object)

  std::size_t size() const {
    return items.size();
  }
  const ObjectRef &at(int64_t i) const {
    if (i < 0 || static_cast<std::size_t>(i) >= items.size())
      throw Error("index " + std::to_string(i) + " of an array of " + std::to_string(items.size()));
    return items[static_cast<std::size_t>(i)];
  }

  std::vector<ObjectRef> items;
};

template <class T> class Array : public ObjectRef {
public:
  static_assert(std::is_base_of<ObjectRef, T>::value, "the elements of an Array are references");
  using ContainerType = ArrayNode;
  using value_type = T;

  // Goes over the elements, and gives each as a reference of its class.
  class iterator {
  public:
    using iterator_category = std::random_access_iterator_tag;
    using value_type = T;
    using difference_type = std::ptrdiff_t;
    using pointer = const T *;
    using reference = T;

    iterator() : at_(nullptr) {}
    explicit iterator(const ObjectRef *at) : at_(at) {}
    T operator*() const {
      return Downcast<T>(*at_);
    }
    T operator[](difference_type n) const {
      return *(*this + n);
    }
    iterator &operator++() {
      ++at_;
      return *this;
    }
    iterator operator++(int) {
      return iterator(at_++);
    }
    iterator &operator--() {
      --at_;
      return *this;
    }
    iterator operator--(int) {
      return iterator(at_--);
    }
    iterator &operator+=(difference_type n) {
      at_ += n;
      return *this;
    }
    iterator &operator-=(difference_type n) {
      at_ -= n;
      return *this;
    }
    iterator operator+(difference_type n) const {
      return iterator(at_ + n);
    }
    iterator operator-(difference_type n) const {
      return iterator(at_ - n);
    }
    difference_type operator-(const iterator &other) const {
      return at_ - other.at_;
    }
    bool operator==(const iterator &other) const {
      return at_ == other.at_;
    }
    bool operator!=(const iterator &other) const {
      return at_ != other.at_;
    }
    bool operator<(const iterator &other) const {
      return at_ < other.at_;
    }

  private:
    const ObjectRef *at_;
  };
  using reverse_iterator = std::reverse_iterator<iterator>;

  Array() : ObjectRef(make_object<ArrayNode>()) {}
  explicit Array(std::nullptr_t) {}
  explicit Array(ObjectPtr<Object> n) : ObjectRef(std::move(n)) {}
  Array(const Array &) = default;
  Array(Array &&) = default;
  Array &operator=(const Array &) = default;
  Array &operator=(Array &&) = default;
  template <class U, class = std::enable_if_t<std::is_base_of<T, U>::value && !std::is_same<T, U>::value>>
  Array(const Array<U> &other) : ObjectRef(other) {}
  Array(std::initializer_list<T> items) : Array(items.begin(), items.end()) {}
  Array(const std::vector<T> &items) : Array(items.begin(), items.end()) {}
  template <class Iterator, class = typename std::iterator_traits<Iterator>::iterator_category>
  Array(Iterator first, Iterator last) : Array() {
    assign(first, last);
  }
  explicit Array(std::size_t n, const T &value) : Array() {
    node().items.assign(n, value);
  }

  template <class Iterator> void assign(Iterator first, Iterator last) {
    std::vector<ObjectRef> items;
    for (; first != last; ++first) items.push_back(T(*first));
    node().items = std::move(items);
  }
  std::size_t size() const {
    return data_ != nullptr ? data()->items.size() : 0;
  }
  bool empty() const {
    return size() == 0;
  }
  std::size_t capacity() const {
    return data_ != nullptr ? data()->items.capacity() : 0;
  }
  T operator[](int64_t i) const {
    if (data_ == nullptr) throw Error("index " + std::to_string(i) + " of no array");
    data()->at(i);
    return begin()[static_cast<std::ptrdiff_t>(i)];
  }
  T front() const {
    return (*this)[0];
  }
  T back() const {
    return (*this)[static_cast<int64_t>(size()) - 1];
  }
  iterator begin() const {
    return iterator(data_ != nullptr ? data()->items.data() : nullptr);
  }
  iterator end() const {
    return begin() + static_cast<std::ptrdiff_t>(size());
  }
  reverse_iterator rbegin() const {
    return reverse_iterator(end());
  }
  reverse_iterator rend() const {
    return reverse_iterator(begin());
  }

  void push_back(const T &item) {
    node().items.push_back(item);
  }
  void pop_back() {
    if (empty()) throw Error("an array without elements");
    node().items.pop_back();
  }
  void Set(int64_t i, T item) {
    if (data_ == nullptr) throw Error("index " + std::to_string(i) + " of no array");
    data()->at(i);
    node().items[static_cast<std::size_t>(i)] = std::move(item);
  }
  void insert(iterator at, const T &item) {
    const std::ptrdiff_t i = at - begin();
    std::vector<ObjectRef> &items = node().items;
    items.insert(items.begin() + i, item);
  }
  void erase(iterator at) {
    const std::ptrdiff_t i = at - begin();
    std::vector<ObjectRef> &items = node().items;
    items.erase(items.begin() + i);
  }
  void resize(int64_t n) {
    if (n < 0) throw Error("an array of " + std::to_string(n) + " elements");
    node().items.resize(static_cast<std::size_t>(n));
  }
  void reserve(int64_t n) {
    if (n > 0) node().items.reserve(static_cast<std::size_t>(n));
  }
  void clear() {
    node().items.clear();
  }
  template <class F, class U = std::decay_t<decltype(std::declval<F &>()(std::declval<T>()))>> Array<U> Map(F f) const {
    Array<U> out;
    for (T item : *this) out.push_back(f(std::move(item)));
    return out;
  }
  const ArrayNode *operator->() const {
    return data();
  }

private:
  const ArrayNode *data() const {
    return static_cast<const ArrayNode *>(data_.get());
  }
  // What may be changed: this reference's own.
  ArrayNode &node() {
    if (data_ == nullptr) data_ = make_object<ArrayNode>();
    if (!data_.unique()) data_ = make_object<ArrayNode>(*data());
    return *static_cast<ArrayNode *>(data_.get());
  }
};

} // namespace runtime

using runtime::Array;
using runtime::ArrayNode;

} // namespace tvm

#endif
