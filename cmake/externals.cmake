# SPDX-License-Identifier: Apache-2.0
#
# The other people's code Hone stands on. Everything comes from Debian except oneDNN, whose processor-only build with GNU
# OpenMP is published on PyPI. Targets: fmt::fmt nlohmann_json::nlohmann_json
# protozero xbyak xxhash hwy PkgConfig::RE2 ZLIB::ZLIB OpenMP::OpenMP_CXX dnnl GTest::gtest_main.

include_guard()

find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(OpenMP COMPONENTS CXX)
find_package(ZLIB REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(HWY REQUIRED IMPORTED_TARGET libhwy)
pkg_check_modules(XXHASH REQUIRED IMPORTED_TARGET libxxhash)
pkg_check_modules(RE2 REQUIRED IMPORTED_TARGET re2)
pkg_check_modules(YAML REQUIRED IMPORTED_TARGET yaml-0.1)
if(BUILD_TESTING)
  find_package(GTest REQUIRED)
endif()

# clang without its own OpenMP runtime (the fuzz build) compiles the pragmas away and takes the library calls from GNU's.
if(NOT TARGET OpenMP::OpenMP_CXX)
  add_library(OpenMP::OpenMP_CXX INTERFACE IMPORTED)
  find_path(HONE_OMP_HEADER omp.h PATHS /usr/lib/gcc/x86_64-linux-gnu/12/include REQUIRED)
  find_library(HONE_GOMP NAMES gomp libgomp.so.1 PATHS /usr/lib/gcc/x86_64-linux-gnu/12 REQUIRED)
  file(COPY ${HONE_OMP_HEADER}/omp.h DESTINATION ${CMAKE_BINARY_DIR}/gomp)
  target_include_directories(OpenMP::OpenMP_CXX SYSTEM INTERFACE ${CMAKE_BINARY_DIR}/gomp)
  target_link_libraries(OpenMP::OpenMP_CXX INTERFACE ${HONE_GOMP})
endif()

function(hone_header_library_ target header)
  find_path(HONE_${target}_INCLUDE ${header} REQUIRED)
  add_library(${target} INTERFACE)
  target_include_directories(${target} SYSTEM INTERFACE ${HONE_${target}_INCLUDE})
endfunction()

hone_header_library_(protozero protozero/pbf_reader.hpp)
hone_header_library_(xbyak xbyak/xbyak.h)
add_library(xxhash ALIAS PkgConfig::XXHASH)
add_library(hwy ALIAS PkgConfig::HWY)

# `dnnl` always exists; HONE_WITH_ONEDNN says in the code whether there is anything behind it.
if(HONE_WITH_ONEDNN)
  find_path(HONE_DNNL_INCLUDE oneapi/dnnl/dnnl.hpp PATHS ${HONE_VENV}/include NO_DEFAULT_PATH)
  find_library(HONE_DNNL_LIBRARY dnnl PATHS ${HONE_VENV}/lib NO_DEFAULT_PATH)
  if(NOT HONE_DNNL_INCLUDE OR NOT HONE_DNNL_LIBRARY)
    message(FATAL_ERROR "oneDNN is not in ${HONE_VENV}. Run `./dev build`, which installs it, or "
                        "`pip install onednn-cpu-gomp==2023.2.0 onednn-devel-cpu-gomp==2023.2.0` into an environment "
                        "named by -DHONE_VENV=..., or configure with -DHONE_WITH_ONEDNN=OFF.")
  endif()
  add_library(dnnl SHARED IMPORTED GLOBAL)
  set_target_properties(dnnl PROPERTIES IMPORTED_LOCATION ${HONE_DNNL_LIBRARY}
    INTERFACE_INCLUDE_DIRECTORIES ${HONE_DNNL_INCLUDE} INTERFACE_SYSTEM_INCLUDE_DIRECTORIES ${HONE_DNNL_INCLUDE}
    INTERFACE_COMPILE_DEFINITIONS HONE_WITH_ONEDNN=1)
else()
  add_library(dnnl INTERFACE)
  target_compile_definitions(dnnl INTERFACE HONE_WITH_ONEDNN=0)
endif()

# Readers of compressed images, where they are there; ImageDecoder says what is missing otherwise.
find_package(PNG)
find_package(JPEG)
pkg_check_modules(WEBP libwebp)
pkg_check_modules(OPENJPEG libopenjp2)
add_library(hone_images INTERFACE)
target_link_libraries(hone_images INTERFACE $<TARGET_NAME_IF_EXISTS:PNG::PNG> $<TARGET_NAME_IF_EXISTS:JPEG::JPEG>
  ${WEBP_LINK_LIBRARIES} ${OPENJPEG_LINK_LIBRARIES})

# What ranks talk through, where it is there; a process that is one of several ranks says what is missing otherwise.
find_path(HONE_GLOO_INCLUDE gloo/rendezvous/file_store.h)
find_library(HONE_GLOO_LIBRARY gloo)
set(HONE_GLOO_FOUND OFF)
if(HONE_GLOO_INCLUDE AND HONE_GLOO_LIBRARY)
  set(HONE_GLOO_FOUND ON)
  add_library(hone_gloo_library INTERFACE)
  target_include_directories(hone_gloo_library SYSTEM INTERFACE ${HONE_GLOO_INCLUDE})
  target_link_libraries(hone_gloo_library INTERFACE ${HONE_GLOO_LIBRARY})
endif()

# NVTX, what NVIDIA's profilers show of a program: headers only. `nvtx_headers` always exists.
file(GLOB hone_cuda_folders ${HONE_VENV}/lib/python3*/site-packages/nvidia/*/include /usr/local/cuda/include /usr/local/cuda-*/include)
add_library(nvtx_headers INTERFACE)
find_path(HONE_NVTX nvtx3/nvToolsExtPayload.h PATHS ${hone_cuda_folders})
if(HONE_NVTX)
  target_include_directories(nvtx_headers SYSTEM INTERFACE ${HONE_NVTX})
endif()

# CUDA: headers only, from the toolkit or from PyPI's nvidia packages in the environment. `cuda_headers` always exists.
set(HONE_CUDA_FOUND OFF)
add_library(cuda_headers INTERFACE)
if(HONE_WITH_CUDA)
  set(hone_cuda_missing "")
  foreach(header cuda.h nvrtc.h cublasLt.h cudnn.h crt/host_defines.h nv/target)
    string(MAKE_C_IDENTIFIER HONE_CUDA_${header} variable)
    find_path(${variable} ${header} PATHS ${hone_cuda_folders} PATH_SUFFIXES .)
    if(${variable})
      target_include_directories(cuda_headers SYSTEM INTERFACE ${${variable}})
    else()
      list(APPEND hone_cuda_missing ${header})
    endif()
  endforeach()
  if(NOT hone_cuda_missing)
    set(HONE_CUDA_FOUND ON)
  elseif(HONE_WITH_CUDA STREQUAL "AUTO")
    message(STATUS "Without the CUDA backend: there is no ${hone_cuda_missing}")
  else()
    message(FATAL_ERROR "There is no ${hone_cuda_missing}. Install the CUDA toolkit and cuDNN, or `pip install nvidia-cuda-runtime nvidia-cuda-crt nvidia-cuda-cccl "
                        "nvidia-cuda-nvrtc nvidia-cublas nvidia-cudnn-cu13` into ${HONE_VENV}, or configure with -DHONE_WITH_CUDA=OFF.")
  endif()
endif()
if(HONE_CUDA_FOUND)
  target_compile_definitions(cuda_headers INTERFACE HONE_WITH_CUDA=1)
else()
  target_compile_definitions(cuda_headers INTERFACE HONE_WITH_CUDA=0)
endif()
