CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL,
	PRIMARY KEY (version_num)
);

CREATE TABLE account_settings (
	key VARCHAR(64) NOT NULL,
	account TEXT NOT NULL,
	given TEXT NOT NULL,
	PRIMARY KEY (key)
);

CREATE TABLE border (
	id INTEGER NOT NULL,
	version INTEGER NOT NULL,
	hosts INTEGER,
	PRIMARY KEY (id)
);

INSERT INTO border (id, version, hosts) VALUES (1, 0, NULL);

CREATE TABLE casts (
	uuid VARCHAR(64) NOT NULL,
	method VARCHAR(64) NOT NULL,
	received_at DOUBLE PRECISION NOT NULL,
	sealed BYTEA,
	kept BOOLEAN GENERATED ALWAYS AS (sealed IS NOT NULL) STORED,
	PRIMARY KEY (uuid)
);

CREATE INDEX ix_casts_kept ON casts (kept, received_at);

CREATE TABLE charges (
	version INTEGER NOT NULL,
	begins DOUBLE PRECISION NOT NULL,
	ends DOUBLE PRECISION NOT NULL,
	capacity TEXT NOT NULL,
	changed TEXT NOT NULL,
	opening TEXT,
	PRIMARY KEY (version)
);

CREATE TABLE events (
	request VARCHAR(36) NOT NULL,
	stage INTEGER NOT NULL,
	at DOUBLE PRECISION NOT NULL,
	until DOUBLE PRECISION NOT NULL,
	state VARCHAR(16) NOT NULL,
	reason VARCHAR(64) NOT NULL,
	subject VARCHAR(255) NOT NULL,
	numbers TEXT NOT NULL,
	hosts VARCHAR(255),
	PRIMARY KEY (request, stage)
);

CREATE TABLE leaders (
	epoch INTEGER NOT NULL,
	holder VARCHAR(255) NOT NULL,
	since DOUBLE PRECISION NOT NULL,
	PRIMARY KEY (epoch)
);

CREATE TABLE leaves (
	uuid VARCHAR(36) NOT NULL,
	server VARCHAR(36) NOT NULL,
	turn INTEGER NOT NULL,
	project VARCHAR(255) NOT NULL,
	owner VARCHAR(255) NOT NULL,
	cause VARCHAR(32) NOT NULL,
	actions VARCHAR(255) NOT NULL,
	at DOUBLE PRECISION NOT NULL,
	changed_at DOUBLE PRECISION NOT NULL,
	tried INTEGER NOT NULL,
	state VARCHAR(16) NOT NULL,
	version INTEGER NOT NULL,
	reason VARCHAR(64) NOT NULL,
	subject VARCHAR(255) NOT NULL,
	numbers TEXT NOT NULL,
	request VARCHAR(36),
	asked_at DOUBLE PRECISION,
	vcpus INTEGER NOT NULL,
	began_at DOUBLE PRECISION,
	chosen_at DOUBLE PRECISION NOT NULL,
	told_at DOUBLE PRECISION,
	acted_at DOUBLE PRECISION,
	gone_at DOUBLE PRECISION,
	returned_at DOUBLE PRECISION,
	PRIMARY KEY (uuid)
);

CREATE INDEX ix_leaves_chosen_at ON leaves (chosen_at);

CREATE INDEX ix_leaves_server_turn ON leaves (server, turn);

CREATE INDEX ix_leaves_state_changed_at ON leaves (state, changed_at);

CREATE TABLE ledger (
	id INTEGER NOT NULL,
	version INTEGER NOT NULL,
	at DOUBLE PRECISION NOT NULL,
	used TEXT NOT NULL,
	since DOUBLE PRECISION NOT NULL,
	spent TEXT NOT NULL,
	PRIMARY KEY (id)
);

INSERT INTO ledger (id, version, at, used, since, spent) VALUES (1, 0, 0.0, '{}', 0.0, '{}');

CREATE TABLE market (
	id INTEGER NOT NULL,
	version INTEGER NOT NULL,
	PRIMARY KEY (id)
);

INSERT INTO market (id, version) VALUES (1, 0);

CREATE TABLE nodes (
	host VARCHAR(255) NOT NULL,
	batch VARCHAR(255) NOT NULL,
	cloud VARCHAR(255) NOT NULL,
	cores DOUBLE PRECISION NOT NULL,
	state VARCHAR(16) NOT NULL,
	since DOUBLE PRECISION NOT NULL,
	until DOUBLE PRECISION,
	version INTEGER NOT NULL,
	history TEXT NOT NULL,
	PRIMARY KEY (host)
);

CREATE TABLE plans (
	uuid VARCHAR(36) NOT NULL,
	goal VARCHAR(16) NOT NULL,
	subject VARCHAR(255) NOT NULL,
	state VARCHAR(16) NOT NULL,
	is_open BOOLEAN NOT NULL,
	made_at DOUBLE PRECISION NOT NULL,
	changed_at DOUBLE PRECISION NOT NULL,
	until DOUBLE PRECISION NOT NULL,
	cause VARCHAR(32) NOT NULL,
	explanation TEXT NOT NULL,
	moves TEXT NOT NULL,
	empties TEXT NOT NULL,
	promised TEXT NOT NULL,
	won TEXT,
	version INTEGER NOT NULL,
	stays TEXT NOT NULL,
	PRIMARY KEY (uuid)
);

CREATE INDEX ix_plans_is_open ON plans (is_open);

CREATE INDEX ix_plans_made_at ON plans (made_at, uuid);

CREATE TABLE pledges (
	id INTEGER NOT NULL,
	version INTEGER NOT NULL,
	kept TEXT NOT NULL,
	PRIMARY KEY (id)
);

INSERT INTO pledges (id, version, kept) VALUES (1, 0, '{"at":0.0,"use":{},"found":{},"given":{}}');

CREATE TABLE prices (
	host VARCHAR(255) NOT NULL,
	resource_class VARCHAR(255) NOT NULL,
	at DOUBLE PRECISION NOT NULL,
	price DOUBLE PRECISION NOT NULL,
	capacity DOUBLE PRECISION NOT NULL,
	PRIMARY KEY (host, resource_class, at)
);

CREATE INDEX ix_prices_at ON prices (at);

CREATE TABLE promises (
	id INTEGER NOT NULL,
	version INTEGER NOT NULL,
	kept TEXT NOT NULL,
	PRIMARY KEY (id)
);

INSERT INTO promises (id, version, kept) VALUES (1, 0, '{"promises":{},"past":[]}');

CREATE TABLE requests (
	uuid VARCHAR(36) NOT NULL,
	cast_uuid VARCHAR(64) NOT NULL,
	project VARCHAR(255) NOT NULL,
	owner VARCHAR(255) NOT NULL,
	asked_at DOUBLE PRECISION NOT NULL,
	expires_at DOUBLE PRECISION,
	origin VARCHAR(64) NOT NULL,
	wanted TEXT NOT NULL,
	state VARCHAR(16) NOT NULL,
	version INTEGER NOT NULL,
	changed_at DOUBLE PRECISION NOT NULL,
	reason VARCHAR(64) NOT NULL,
	subject VARCHAR(255) NOT NULL,
	numbers TEXT NOT NULL,
	hosts TEXT NOT NULL,
	band VARCHAR(16) NOT NULL,
	time_limit_s DOUBLE PRECISION,
	extended_s DOUBLE PRECISION NOT NULL,
	leaves_by VARCHAR(32),
	room TEXT,
	held_by VARCHAR(16),
	held_at DOUBLE PRECISION,
	held_why VARCHAR(255),
	first_turn INTEGER,
	stage INTEGER NOT NULL,
	stage_at DOUBLE PRECISION NOT NULL,
	flavor VARCHAR(255),
	sent_at DOUBLE PRECISION,
	waited_s DOUBLE PRECISION,
	PRIMARY KEY (uuid),
	UNIQUE (cast_uuid)
);

CREATE INDEX ix_requests_asked_at ON requests (asked_at, uuid);

CREATE INDEX ix_requests_project_asked_at ON requests (project, asked_at, uuid);

CREATE INDEX ix_requests_sent_at ON requests (sent_at);

CREATE INDEX ix_requests_state_asked_at ON requests (state, asked_at, uuid);

CREATE INDEX ix_requests_state_changed_at ON requests (state, changed_at);

CREATE TABLE risks (
	server VARCHAR(36) NOT NULL,
	project VARCHAR(255) NOT NULL,
	owner VARCHAR(255) NOT NULL,
	state VARCHAR(16) NOT NULL,
	since DOUBLE PRECISION NOT NULL,
	changed_at DOUBLE PRECISION NOT NULL,
	is_written BOOLEAN NOT NULL,
	reason VARCHAR(64) NOT NULL,
	subject VARCHAR(255) NOT NULL,
	numbers TEXT NOT NULL,
	PRIMARY KEY (server)
);

CREATE TABLE servers (
	server VARCHAR(36) NOT NULL,
	request VARCHAR(36) NOT NULL,
	PRIMARY KEY (server, request)
);

CREATE INDEX ix_servers_request ON servers (request);

CREATE TABLE shares (
	id INTEGER NOT NULL,
	version INTEGER NOT NULL,
	PRIMARY KEY (id)
);

INSERT INTO shares (id, version) VALUES (1, 0);

CREATE TABLE trades (
	key VARCHAR(64) NOT NULL,
	project TEXT NOT NULL,
	kept TEXT NOT NULL,
	PRIMARY KEY (key)
);

CREATE TABLE waits (
	request VARCHAR(36) NOT NULL,
	reason VARCHAR(64) NOT NULL,
	project VARCHAR(255) NOT NULL,
	sent_at DOUBLE PRECISION NOT NULL,
	wait_s DOUBLE PRECISION NOT NULL,
	PRIMARY KEY (request, reason)
);

CREATE INDEX ix_waits_project ON waits (project, reason, wait_s, sent_at);

CREATE INDEX ix_waits_reason ON waits (reason, wait_s, sent_at);

INSERT INTO alembic_version (version_num) VALUES ('v1_tables');

