# SPDX-License-Identifier: Apache-2.0
# The libraries, by pkg-config; what is missing is said with the Debian package that has it.
find_package(PkgConfig REQUIRED)

function(pernode_library name module package)
	pkg_check_modules(${name} QUIET IMPORTED_TARGET GLOBAL ${module})
	if(NOT ${name}_FOUND)
		message(FATAL_ERROR "${module} was not found by pkg-config.\n"
			"On Debian install it with: apt-get install ${package}\n"
			"or everything at once with: scripts/setup")
	endif()
	add_library(pernode::${name} ALIAS PkgConfig::${name})
	if(NOT name STREQUAL cmocka)
		set_property(GLOBAL APPEND PROPERTY PERNODE_LIBRARIES "${module} ${${name}_VERSION}")
	endif()
endfunction()

if(PERNODE_STATIC)
	include(cmake/static/libraries.cmake)
	return()
endif()
pernode_library(uv libuv libuv1-dev)
pernode_library(yajl yajl libyajl-dev)
pernode_library(zlib zlib zlib1g-dev)
pernode_library(curl libcurl libcurl4-gnutls-dev)
pernode_library(microhttpd libmicrohttpd libmicrohttpd-dev)
pernode_library(yaml yaml-0.1 libyaml-dev)
pernode_library(cgroup libcgroup libcgroup-dev)
pernode_library(cmocka cmocka libcmocka-dev) # of the tests only
