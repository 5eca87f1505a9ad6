// Memory of a backend with an owner.
#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "kernels/backend.h"

namespace millrace {

/// An array of numbers in the memory of a backend, which must outlive it. Freed with its owner.
template <typename P, typename T>
class BackendArray {
   public:
    BackendArray() = default;

    /// `size` numbers, all zero.
    BackendArray(Backend<P>& backend, std::size_t size)
        : backend_(&backend),
          data_(size == 0 ? nullptr : static_cast<T*>(backend.allocate(size * sizeof(T)))),
          size_(size) {
        if (size != 0) {
            backend.clear(data_, size * sizeof(T));
        }
    }

    ~BackendArray() {
        if (data_ != nullptr) {
            backend_->release(data_);
        }
    }
    BackendArray(BackendArray&& other) noexcept { swap(other); }
    BackendArray& operator=(BackendArray&& other) noexcept {
        BackendArray taken(std::move(other));
        swap(taken);
        return *this;
    }

    T* data() { return data_; }
    const T* data() const { return data_; }
    std::size_t size() const { return size_; }

    void upload(std::span<const T> host) { backend_->upload(data_, host.data(), host.size_bytes()); }
    std::vector<T> download() const {
        std::vector<T> host(size_);
        download_to(host);
        return host;
    }
    /// The first host.size() numbers.
    void download_to(std::span<T> host) const {
        if (!host.empty()) {
            backend_->download(host.data(), data_, host.size_bytes());
        }
    }

   private:
    void swap(BackendArray& other) noexcept {
        std::swap(backend_, other.backend_);
        std::swap(data_, other.data_);
        std::swap(size_, other.size_);
    }

    Backend<P>* backend_ = nullptr;
    T* data_ = nullptr;
    std::size_t size_ = 0;
};

}  // namespace millrace
