package holdfast

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// connect makes the client of an address: redis://, rediss://, unix://,
// redis+sentinel://h1,h2/master or redis+cluster://h1,h2. It connects at the
// first request. Requests are sent again by this package, so the client does not.
func connect(address string, timeout time.Duration) (redis.UniversalClient, error) {
	scheme, rest, found := strings.Cut(address, "://")
	quiet := &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	switch scheme {
	case "redis", "rediss", "unix":
		if !found {
			break
		}
		options, err := redis.ParseURL(address)
		if err != nil {
			return nil, fmt.Errorf("the address of Redis: %w", err)
		}
		options.MaxRetries = -1
		options.DialTimeout, options.ReadTimeout, options.WriteTimeout = timeout, timeout, timeout
		options.ContextTimeoutEnabled = true
		options.MaintNotificationsConfig = quiet
		return redis.NewClient(options), nil
	case "redis+sentinel", "rediss+sentinel":
		several, err := parseSeveral(scheme, rest, "26379")
		if err != nil {
			return nil, err
		}
		master, db, _ := strings.Cut(several.path, "/")
		number, err := strconv.Atoi(db)
		if master == "" || (db != "" && err != nil) {
			return nil, fmt.Errorf("expected as the address of Redis %s://host1,host2/master, found no master", scheme)
		}
		return redis.NewFailoverClient(&redis.FailoverOptions{
			MasterName: master, SentinelAddrs: several.nodes, DB: number, TLSConfig: several.tls,
			Username: several.user, Password: several.password,
			SentinelUsername: several.user, SentinelPassword: several.password,
			MaxRetries: -1, DialTimeout: timeout, ReadTimeout: timeout, WriteTimeout: timeout,
			ContextTimeoutEnabled: true,
		}), nil
	case "redis+cluster", "rediss+cluster":
		several, err := parseSeveral(scheme, rest, "6379")
		if err != nil {
			return nil, err
		}
		return redis.NewClusterClient(&redis.ClusterOptions{
			Addrs: several.nodes, Username: several.user, Password: several.password, TLSConfig: several.tls,
			DialTimeout: timeout, ReadTimeout: timeout, WriteTimeout: timeout,
			ContextTimeoutEnabled: true, MaintNotificationsConfig: quiet,
		}), nil
	}
	if !found {
		scheme = "no scheme"
	}
	return nil, fmt.Errorf("expected as the address of Redis redis://, rediss://, unix://, redis+sentinel:// "+
		"or redis+cluster://, found %s", scheme)
}

// several are the nodes of an address that names more than one.
type several struct {
	nodes          []string
	user, password string
	path           string
	tls            *tls.Config
}

func parseSeveral(scheme, rest, port string) (*several, error) {
	s := &several{}
	hosts, path, _ := strings.Cut(rest, "/")
	s.path = strings.TrimSuffix(path, "/")
	if at := strings.LastIndexByte(hosts, '@'); at >= 0 {
		user, password, _ := strings.Cut(hosts[:at], ":")
		var errs [2]error
		s.user, errs[0] = url.PathUnescape(user)
		s.password, errs[1] = url.PathUnescape(password)
		if errs[0] != nil || errs[1] != nil {
			return nil, fmt.Errorf("the address of Redis: expected the user and the password of %s:// with %%-escapes", scheme)
		}
		hosts = hosts[at+1:]
	}
	for _, host := range strings.Split(hosts, ",") {
		if host == "" {
			continue
		}
		if _, _, err := net.SplitHostPort(host); err != nil {
			host = net.JoinHostPort(strings.Trim(host, "[]"), port)
		}
		s.nodes = append(s.nodes, host)
	}
	if len(s.nodes) == 0 || strings.ContainsAny(s.path, "?#") {
		return nil, fmt.Errorf("expected as the address of Redis %s://host1,host2, found none, or more behind it", scheme)
	}
	if strings.HasPrefix(scheme, "rediss") {
		s.tls = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	return s, nil
}
