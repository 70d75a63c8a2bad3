// SPDX-License-Identifier: GPL-3.0-or-later

//go:build tools

package tools

import _ "go.etcd.io/etcd/server/v3"
