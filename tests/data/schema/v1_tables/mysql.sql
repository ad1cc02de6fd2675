CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL,
	PRIMARY KEY (version_num)
);

CREATE TABLE account_settings (
	`key` VARCHAR(64) NOT NULL,
	account TEXT NOT NULL,
	given LONGTEXT NOT NULL,
	PRIMARY KEY (`key`)
)ENGINE=InnoDB CHARSET=utf8mb4;

CREATE TABLE border (
	id INTEGER NOT NULL,
	version INTEGER NOT NULL,
	hosts INTEGER,
	PRIMARY KEY (id)
)ENGINE=InnoDB CHARSET=utf8mb4;

INSERT INTO border (id, version, hosts) VALUES (1, 0, NULL);

CREATE TABLE casts (
	uuid VARCHAR(64) NOT NULL,
	method VARCHAR(64) NOT NULL,
	received_at DOUBLE NOT NULL,
	sealed LONGBLOB,
	kept BOOL GENERATED ALWAYS AS (sealed IS NOT NULL) STORED,
	PRIMARY KEY (uuid)
)ENGINE=InnoDB CHARSET=utf8mb4;

CREATE INDEX ix_casts_kept ON casts (kept, received_at);

CREATE TABLE charges (
	version INTEGER NOT NULL,
	begins DOUBLE NOT NULL,
	ends DOUBLE NOT NULL,
	capacity TEXT NOT NULL,
	changed LONGTEXT NOT NULL,
	opening LONGTEXT,
	PRIMARY KEY (version)
)ENGINE=InnoDB CHARSET=utf8mb4;

CREATE TABLE events (
	request VARCHAR(36) NOT NULL,
	stage INTEGER NOT NULL,
	at DOUBLE NOT NULL,
	until DOUBLE NOT NULL,
	state VARCHAR(16) NOT NULL,
	reason VARCHAR(64) NOT NULL,
	subject VARCHAR(255) NOT NULL,
	numbers TEXT NOT NULL,
	hosts VARCHAR(255),
	PRIMARY KEY (request, stage)
)ENGINE=InnoDB CHARSET=utf8mb4;

CREATE TABLE leaders (
	epoch INTEGER NOT NULL,
	holder VARCHAR(255) NOT NULL,
	since DOUBLE NOT NULL,
	PRIMARY KEY (epoch)
)ENGINE=InnoDB CHARSET=utf8mb4;

CREATE TABLE leaves (
	uuid VARCHAR(36) NOT NULL,
	server VARCHAR(36) NOT NULL,
	turn INTEGER NOT NULL,
	project VARCHAR(255) NOT NULL,
	owner VARCHAR(255) NOT NULL,
	cause VARCHAR(32) NOT NULL,
	actions VARCHAR(255) NOT NULL,
	at DOUBLE NOT NULL,
	changed_at DOUBLE NOT NULL,
	tried INTEGER NOT NULL,
	state VARCHAR(16) NOT NULL,
	version INTEGER NOT NULL,
	reason VARCHAR(64) NOT NULL,
	subject VARCHAR(255) NOT NULL,
	numbers TEXT NOT NULL,
	request VARCHAR(36),
	asked_at DOUBLE,
	vcpus INTEGER NOT NULL,
	began_at DOUBLE,
	chosen_at DOUBLE NOT NULL,
	told_at DOUBLE,
	acted_at DOUBLE,
	gone_at DOUBLE,
	returned_at DOUBLE,
	PRIMARY KEY (uuid)
)ENGINE=InnoDB CHARSET=utf8mb4;

CREATE INDEX ix_leaves_chosen_at ON leaves (chosen_at);

CREATE INDEX ix_leaves_server_turn ON leaves (server, turn);

CREATE INDEX ix_leaves_state_changed_at ON leaves (state, changed_at);

CREATE TABLE ledger (
	id INTEGER NOT NULL,
	version INTEGER NOT NULL,
	at DOUBLE NOT NULL,
	used LONGTEXT NOT NULL,
	since DOUBLE NOT NULL,
	spent LONGTEXT NOT NULL,
	PRIMARY KEY (id)
)ENGINE=InnoDB CHARSET=utf8mb4;

INSERT INTO ledger (id, version, at, used, since, spent) VALUES (1, 0, 0.0, '{}', 0.0, '{}');

CREATE TABLE market (
	id INTEGER NOT NULL,
	version INTEGER NOT NULL,
	PRIMARY KEY (id)
)ENGINE=InnoDB CHARSET=utf8mb4;

INSERT INTO market (id, version) VALUES (1, 0);

CREATE TABLE nodes (
	host VARCHAR(255) COLLATE utf8mb4_bin NOT NULL,
	batch VARCHAR(255) NOT NULL,
	cloud VARCHAR(255) NOT NULL,
	cores DOUBLE NOT NULL,
	state VARCHAR(16) NOT NULL,
	since DOUBLE NOT NULL,
	until DOUBLE,
	version INTEGER NOT NULL,
	history LONGTEXT NOT NULL,
	PRIMARY KEY (host)
)ENGINE=InnoDB CHARSET=utf8mb4;

CREATE TABLE plans (
	uuid VARCHAR(36) NOT NULL,
	goal VARCHAR(16) NOT NULL,
	subject VARCHAR(255) NOT NULL,
	state VARCHAR(16) NOT NULL,
	is_open BOOL NOT NULL,
	made_at DOUBLE NOT NULL,
	changed_at DOUBLE NOT NULL,
	until DOUBLE NOT NULL,
	cause VARCHAR(32) NOT NULL,
	explanation TEXT NOT NULL,
	moves LONGTEXT NOT NULL,
	empties LONGTEXT NOT NULL,
	promised TEXT NOT NULL,
	won TEXT,
	version INTEGER NOT NULL,
	stays LONGTEXT NOT NULL,
	PRIMARY KEY (uuid)
)ENGINE=InnoDB CHARSET=utf8mb4;

CREATE INDEX ix_plans_is_open ON plans (is_open);

CREATE INDEX ix_plans_made_at ON plans (made_at, uuid);

CREATE TABLE pledges (
	id INTEGER NOT NULL,
	version INTEGER NOT NULL,
	kept LONGTEXT NOT NULL,
	PRIMARY KEY (id)
)ENGINE=InnoDB CHARSET=utf8mb4;

INSERT INTO pledges (id, version, kept) VALUES (1, 0, '{"at":0.0,"use":{},"found":{},"given":{}}');

CREATE TABLE prices (
	host VARCHAR(255) COLLATE utf8mb4_bin NOT NULL,
	resource_class VARCHAR(255) COLLATE utf8mb4_bin NOT NULL,
	at DOUBLE NOT NULL,
	price DOUBLE NOT NULL,
	capacity DOUBLE NOT NULL,
	PRIMARY KEY (host, resource_class, at)
)ENGINE=InnoDB CHARSET=utf8mb4;

CREATE INDEX ix_prices_at ON prices (at);

CREATE TABLE promises (
	id INTEGER NOT NULL,
	version INTEGER NOT NULL,
	kept LONGTEXT NOT NULL,
	PRIMARY KEY (id)
)ENGINE=InnoDB CHARSET=utf8mb4;

INSERT INTO promises (id, version, kept) VALUES (1, 0, '{"promises":{},"past":[]}');

CREATE TABLE requests (
	uuid VARCHAR(36) NOT NULL,
	cast_uuid VARCHAR(64) NOT NULL,
	project VARCHAR(255) NOT NULL,
	owner VARCHAR(255) NOT NULL,
	asked_at DOUBLE NOT NULL,
	expires_at DOUBLE,
	origin VARCHAR(64) NOT NULL,
	wanted LONGTEXT NOT NULL,
	state VARCHAR(16) NOT NULL,
	version INTEGER NOT NULL,
	changed_at DOUBLE NOT NULL,
	reason VARCHAR(64) NOT NULL,
	subject VARCHAR(255) NOT NULL,
	numbers TEXT NOT NULL,
	hosts TEXT NOT NULL,
	band VARCHAR(16) NOT NULL,
	time_limit_s DOUBLE,
	extended_s DOUBLE NOT NULL,
	leaves_by VARCHAR(32),
	room LONGTEXT,
	held_by VARCHAR(16),
	held_at DOUBLE,
	held_why VARCHAR(255),
	first_turn INTEGER,
	stage INTEGER NOT NULL,
	stage_at DOUBLE NOT NULL,
	flavor VARCHAR(255) COLLATE utf8mb4_bin,
	sent_at DOUBLE,
	waited_s DOUBLE,
	PRIMARY KEY (uuid),
	UNIQUE (cast_uuid)
)ENGINE=InnoDB CHARSET=utf8mb4;

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
	since DOUBLE NOT NULL,
	changed_at DOUBLE NOT NULL,
	is_written BOOL NOT NULL,
	reason VARCHAR(64) NOT NULL,
	subject VARCHAR(255) NOT NULL,
	numbers TEXT NOT NULL,
	PRIMARY KEY (server)
)ENGINE=InnoDB CHARSET=utf8mb4;

CREATE TABLE servers (
	server VARCHAR(36) NOT NULL,
	request VARCHAR(36) NOT NULL,
	PRIMARY KEY (server, request)
)ENGINE=InnoDB CHARSET=utf8mb4;

CREATE INDEX ix_servers_request ON servers (request);

CREATE TABLE shares (
	id INTEGER NOT NULL,
	version INTEGER NOT NULL,
	PRIMARY KEY (id)
)ENGINE=InnoDB CHARSET=utf8mb4;

INSERT INTO shares (id, version) VALUES (1, 0);

CREATE TABLE trades (
	`key` VARCHAR(64) NOT NULL,
	project TEXT NOT NULL,
	kept LONGTEXT NOT NULL,
	PRIMARY KEY (`key`)
)ENGINE=InnoDB CHARSET=utf8mb4;

CREATE TABLE waits (
	request VARCHAR(36) NOT NULL,
	reason VARCHAR(64) NOT NULL,
	project VARCHAR(255) NOT NULL,
	sent_at DOUBLE NOT NULL,
	wait_s DOUBLE NOT NULL,
	PRIMARY KEY (request, reason)
)ENGINE=InnoDB CHARSET=utf8mb4;

CREATE INDEX ix_waits_project ON waits (project, reason, wait_s, sent_at);

CREATE INDEX ix_waits_reason ON waits (reason, wait_s, sent_at);

INSERT INTO alembic_version (version_num) VALUES ('v1_tables');

